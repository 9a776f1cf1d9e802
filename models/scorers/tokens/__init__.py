"""Scorers of tokens and words."""
