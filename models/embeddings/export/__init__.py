"""Encoder folders that sentence-transformers loads with its own modules, without Paraloom."""
