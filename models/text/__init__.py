"""Texts as columns: tokens, word vectors, IDF, parses, and files of texts."""
