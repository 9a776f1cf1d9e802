"""Scorers with word vectors or neural models."""
