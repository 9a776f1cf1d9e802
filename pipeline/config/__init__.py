"""The configuration of a run: `options` declares the keys, and `read` reads YAML files."""

from paraloom.pipeline.config.options import Config
from paraloom.pipeline.config.read import read_config

__all__ = ["Config", "read_config"]
