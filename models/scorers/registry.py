"""Paraloom's scorers by name, as the modules in three folders declare them."""

from importlib import import_module
from pkgutil import iter_modules

from paraloom.models.scorers import checks, learned, tokens
from paraloom.models.scorers.base import DECLARED, Scorer

SCORERS: dict[str, Scorer] = {}
for _folder in (tokens, checks, learned):
    for _module in iter_modules(_folder.__path__):  # in this order, even if imported before
        _name = import_module(f"{_folder.__name__}.{_module.name}").__name__
        SCORERS |= {n: of for n, of in DECLARED.items() if of.function.__module__ == _name}
