"""Paraloom's scorers by name, collected from `SCORERS` in three folders."""

from importlib import import_module
from pkgutil import iter_modules

from paraloom.models.scorers import checks, learned, tokens
from paraloom.models.scorers.base import Scorer

SCORERS: dict[str, Scorer] = {}
for _folder in (tokens, checks, learned):
    for _module in iter_modules(_folder.__path__):
        SCORERS |= getattr(import_module(f"{_folder.__name__}.{_module.name}"), "SCORERS", {})
