"""Scores that were computed elsewhere: read from files, or printed by programs of the user's."""
