"""Releases of a run's corpus: files for Hugging Face's Hub, made on this machine."""
