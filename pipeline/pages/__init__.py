"""The report of a run and the cards of its corpora and encoders."""

VERSION = 16
"""Increase this number when a page changes for the same run."""
