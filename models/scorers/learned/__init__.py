"""Scorers that use word vectors or neural models."""
