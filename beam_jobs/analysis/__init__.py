"""Jobs that find something out about a corpus: statistics, phrase tables, samples, differences."""
