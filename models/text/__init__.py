"""Text as columns: tokens, word vectors, IDF, phrases, parses."""
