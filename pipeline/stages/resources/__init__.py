"""Stages that make what scorers read: `pair_models`, or a module with the resource's name."""
