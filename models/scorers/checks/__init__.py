"""Checks of meaning: scorers with the value 1 where a pair passes, and 0 where it fails.

`select.where` rejects with them: `same_numbers == 1`.
"""
