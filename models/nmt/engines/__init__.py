"""Decoders: one module for each, behind the interface in `base`."""
