"""Commands for the papers' analyses."""
