"""Releases of a corpus, which are folders of files for the Hub."""
