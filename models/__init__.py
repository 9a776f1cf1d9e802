"""Text processing, translation, scorers and encoders. Nothing here depends on Beam or on runs."""

if __name__ != "paraloom.models":  # `import models` in a checkout would define each class twice
    raise ImportError(f"{__name__} is now called paraloom.models")
