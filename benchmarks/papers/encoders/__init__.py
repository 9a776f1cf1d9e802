"""Encoders of the papers' other systems."""
