"""Paraphrase corpora from bitext, and sentence embeddings from paraphrases."""
