"""Checks of meaning: scorers with the value 1 for a pair that passes, else 0.

To reject failing pairs, use `select.where`: `same_numbers == 1`.
"""
