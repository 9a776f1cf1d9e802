"""Computation: tokens, translation, similarity, encoders; independent of Beam and of runs."""

if __name__ != "paraloom.models":  # as `models` in a checkout, it would duplicate every class
    raise ImportError(f"{__name__} is now called paraloom.models")
