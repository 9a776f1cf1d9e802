"""The console that prints the results of commands."""

from collections.abc import Iterable, Sequence
from typing import BinaryIO, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from paraloom.models.errors import UserError
from paraloom.models.printing import visible


class _Visible(Console):
    """A console that prints control characters as visible escapes."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


def binary(stream: TextIO | None, name: str) -> BinaryIO:
    """Return the binary form of the standard stream `name`, which the shell may have closed."""
    if stream is None:
        raise UserError(f"the standard {name} is closed; connect it to a file or a pipe")
    return stream.buffer


def console(width: int = 120) -> Console:
    """Return a console. Lines have `width` characters if standard output is not a terminal."""
    # No markup, because paths and sentences may contain brackets.
    terminal = _Visible(markup=False, emoji=False)
    return terminal if terminal.is_terminal else _Visible(width=width, markup=False, emoji=False)


def number_table(
    title: str | None,
    *columns: str,
    numbers: Sequence[str] = (),
    after: Sequence[str] = (),
    rows: Iterable[Iterable[RenderableType]] = (),
) -> Table:
    """Return a table with text `columns`, right-aligned `numbers`, and the text columns `after`."""
    table = Table(*columns, title=title)
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold")
    for name in after:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
