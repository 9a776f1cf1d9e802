"""A run: configuration, the order of stages, resume, manifest, the command line."""

if __name__ != "paraloom.pipeline":  # a second copy of every class, in a checkout
    raise ImportError(f"{__name__} is now called paraloom.pipeline")
