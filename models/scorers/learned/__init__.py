"""Scorers with word vectors, classifiers or neural models."""
