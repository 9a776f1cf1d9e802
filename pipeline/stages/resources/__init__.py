"""Stages that make resources of scorers: `pair_models`, or a module with the resource's name."""
