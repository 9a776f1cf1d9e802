"""Benchmarks of `make bench`, which print figures and ratios to a baseline, and write JSON."""
