"""The configuration of a run: read and checked before any work starts.

`options` declares the keys, `read` reads a YAML file; `paraloom.papers.documentation` writes
the JSON Schema and the configuration page.
"""

from paraloom.pipeline.config.options import Config
from paraloom.pipeline.config.read import read_config

__all__ = ["Config", "read_config"]
