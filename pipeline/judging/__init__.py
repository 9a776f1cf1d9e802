"""People's judgments of a run's pairs: their files, the sample to judge, the page, agreement."""
