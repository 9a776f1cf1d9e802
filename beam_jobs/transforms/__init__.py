"""Algorithms on distributed columns that several jobs share."""
