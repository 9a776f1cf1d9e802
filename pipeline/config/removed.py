"""Keys that configurations had, and what to write instead."""

REMOVED: dict[str, str] = {}
