"""Stages that make scorers' resources. Modules are named after resources, except `pair_models`."""
