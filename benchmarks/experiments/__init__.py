"""Small versions of the papers' tables, trained on your own corpus (`make experiments`)."""
