"""What `make bench` measures: ratios against something in the same run, and JSON."""
