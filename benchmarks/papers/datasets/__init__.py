"""Readers of data for the papers' systems and analyses."""
