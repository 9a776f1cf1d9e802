"""The report's HTML: small pieces, then the whole page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple


class Section(NamedTuple):
    """A part of the page: its anchor, its heading, its content as HTML."""

    anchor: str
    heading: str
    content: str


def page(title: str, key: str, head: str, sections: Sequence[Section]) -> str:
    """The whole document; nothing in it is fetched from anywhere.

    Args:
        key: of all that the report is made from; `key_of` finds it again.
        head: HTML between the title and the list of the sections.
    """
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{s.anchor}">{escape(s.heading)}</a>' for s in sections)
    body = "".join(
        f'<section id="{s.anchor}"><h2>{escape(s.heading)}</h2>{s.content}</section>\n'
        for s in sections
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8">{_KEY}{key}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)} · Paraloom</title>\n<style>\n{style}</style></head>\n"
        f"<body><header><h1>{escape(title)}</h1>{head}</header>\n"
        f'<nav aria-label="Sections">{links}</nav>\n<main>\n{body}</main></body></html>\n'
    )


_KEY = '<meta name="paraloom-key" content="'


def key_of(document: bytes) -> str | None:
    """The key that `page` wrote into a document."""
    _, found, rest = document[:500].decode(errors="replace").partition(_KEY)
    return rest.partition('"')[0] if found else None


def figure(drawing: str, caption: str, *, heading: str = "", kind: str = "") -> str:
    """A picture and what to see in it; `caption` is HTML."""
    title = f"<h3>{escape(heading)}</h3>" if heading else ""
    shape = f' class="{kind}"' if kind else ""
    return f"<figure{shape}>{title}{drawing}<figcaption>{caption}</figcaption></figure>"


def tiles(values: Iterable[tuple[str, str]]) -> str:
    """Figures that matter most, large: (what, value)."""
    cells = (
        f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for what, value in values
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


class Row(NamedTuple):
    """A row of a table: its head, its cells, and whether it sums up those above."""

    head: str
    cells: Sequence[str]
    mean: bool = False


def table(
    columns: Sequence[str], rows: Iterable[Row], *, caption: str, numbers: bool = True
) -> str:
    """A table that scrolls within itself where it is too wide; cells are plain text.

    Args:
        columns: heads, that of the row heads first.
        numbers: whether the cells are numbers (set to the right).
    """
    kind = ' class="number"' if numbers else ""
    first, *rest = columns
    head = f'<th scope="col">{escape(first)}</th>'
    head += "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name in rest)
    body = "".join(
        f'<tr{" class=mean" if row.mean else ""}><th scope="row">{escape(row.head)}</th>'
        + "".join(f"<td{kind}>{escape(cell)}</td>" for cell in row.cells)
        + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>"
    )


def fold(summary: str, content: str, *, opened: bool = False) -> str:
    """Content that opens when its summary is chosen."""
    state = " open" if opened else ""
    return f"<details{state}><summary>{escape(summary)}</summary>{content}</details>"
