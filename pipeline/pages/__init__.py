"""The report, the cards, and the words and plots on them."""

VERSION = 10
"""Bump when a page looks different for the same run."""
