"""Computation: tokens, translation, similarity, encoders; independent of Beam and of runs."""

if __name__ != "paraloom.models":  # a second copy of every class, in a checkout
    raise ImportError(f"{__name__} is now called paraloom.models")
