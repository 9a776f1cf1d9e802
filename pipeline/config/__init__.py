"""The configuration of a run: `options` declares the keys, and `read` reads YAML files.

`paraloom.papers.documentation` generates the JSON Schema and docs/configuration.md from the keys.
"""

from paraloom.pipeline.config.options import Config
from paraloom.pipeline.config.read import read_config

__all__ = ["Config", "read_config"]
