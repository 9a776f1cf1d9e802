"""Heads: they predict a label from the vectors of two sentences."""
