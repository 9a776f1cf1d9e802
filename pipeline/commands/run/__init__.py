"""Commands that look at a run."""
