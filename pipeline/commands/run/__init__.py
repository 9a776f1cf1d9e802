"""Commands that show or use the results of a run."""
