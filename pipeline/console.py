"""The console for tables and text."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def console(width: int = 120) -> Console:
    """A console without markup, since paths and sentences may contain brackets.

    Args:
        width: in characters, if standard output is not a terminal.
    """
    terminal = Console(markup=False, emoji=False)
    return terminal if terminal.is_terminal else Console(width=width, markup=False, emoji=False)


def number_table(title: str | None, *columns: str, numbers: Sequence[str] = ()) -> Table:
    """A table; columns of numbers are set to the right."""
    table = Table(*columns, title=title)
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold")
    return table
