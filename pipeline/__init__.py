"""Runs: their configuration, stages and records, and the command line."""

if __name__ != "paraloom.pipeline":  # under another name, Python would create all classes again
    raise ImportError(f"{__name__} is now called paraloom.pipeline")
