"""A sample corpus that the project writes itself: a first run needs nothing but the clone."""

from pipeline.sample.write import write_sample

__all__ = ["write_sample"]
