"""The papers' tables in small, on a corpus of one's own (`make experiments`)."""
