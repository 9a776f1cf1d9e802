"""Stages that make scorers' resources. Modules except `pair_models` have the resource's name."""
