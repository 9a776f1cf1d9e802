"""A run: configuration, the order of stages, resume, manifest, the command line."""

if __name__ != "paraloom.pipeline":  # in a checkout: a second copy of every class
    raise ImportError(f"{__name__} is now called paraloom.pipeline")
