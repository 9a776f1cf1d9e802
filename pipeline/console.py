"""The console for tables and text."""

from rich.console import Console


def console(width: int = 120) -> Console:
    """A console without markup, since paths and sentences may contain brackets.

    Args:
        width: in characters, if standard output is not a terminal.
    """
    terminal = Console(markup=False, emoji=False)
    return terminal if terminal.is_terminal else Console(width=width, markup=False, emoji=False)
