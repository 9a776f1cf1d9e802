"""Beam's local runner with forked worker processes."""
