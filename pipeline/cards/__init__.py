"""Data cards of corpora and model cards of encoders, in the form of Hugging Face's Hub."""
