"""Jobs that find something out about a corpus: IDF, samples, differences."""
