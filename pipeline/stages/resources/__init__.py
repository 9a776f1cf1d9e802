"""Stages that make resources of scorers. Modules have the resource's name, except `pair_models`."""
