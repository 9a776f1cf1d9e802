"""Algorithms on distributed columns, which several jobs share."""
