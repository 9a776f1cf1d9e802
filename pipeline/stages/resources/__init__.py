"""Stages that make scorers' resources. A module, except `pair_models`, has its resource's name."""
