"""Sentence encoders: vocabularies, networks, training, evaluation and applications."""
