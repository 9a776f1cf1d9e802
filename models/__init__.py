"""Computation: tokens, translation, similarity, encoders; independent of Beam and of runs."""

if __name__ != "paraloom.models":  # imported from a checkout, it would copy every class
    raise ImportError(f"{__name__} is now called paraloom.models")
