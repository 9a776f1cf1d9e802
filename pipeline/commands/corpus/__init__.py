"""Commands that build a corpus."""
