"""Benchmarks of `make bench`: figures, their ratios to references in the same run, and JSON."""
