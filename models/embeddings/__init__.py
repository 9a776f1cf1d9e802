"""Sentence embeddings: vocabulary, encoders, training, evaluation."""
