"""Scorers that compare the tokens of the two sides."""
