"""Runs: their configuration, stages and records, and the command line."""

if __name__ != "paraloom.pipeline":  # a second name would create a second copy of every class
    raise ImportError(f"{__name__} is now called paraloom.pipeline")
