"""Where paraloom prints for people."""

from __future__ import annotations

from rich.console import Console


def console(width: int = 120) -> Console:
    """A console that prints text as it stands: a path or a sentence may have brackets in it.

    Args:
        width: in characters, where standard output is no terminal.
    """
    shown = Console(markup=False, emoji=False)
    return shown if shown.is_terminal else Console(width=width, markup=False, emoji=False)
