"""People's judgments of a run's pairs: their files, the sample shown, the page, the import."""
