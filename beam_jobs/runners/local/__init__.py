"""Beam's local runner, with worker processes that are forked."""
