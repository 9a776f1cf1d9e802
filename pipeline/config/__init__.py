"""The configuration of a run, which is checked before any work starts.

`options` declares the keys, and `read` reads YAML files. `paraloom.papers.documentation` generates
the JSON Schema and the page docs/configuration.md from the declarations.
"""

from paraloom.pipeline.config.options import Config
from paraloom.pipeline.config.read import read_config

__all__ = ["Config", "read_config"]
