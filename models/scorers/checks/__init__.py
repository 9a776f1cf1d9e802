"""Checks of meaning: scorers with the value 1 for a pair that passes and 0 for a pair that fails.

To reject failing pairs, add a condition such as `same_numbers == 1` to `select.where`.
"""
