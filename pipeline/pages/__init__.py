"""The report, the cards, and the words and plots on them."""

VERSION = 11
"""Bump when a page looks different for the same run."""
