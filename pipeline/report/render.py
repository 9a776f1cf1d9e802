"""Jinja2 environments: HTML for the report, Markdown for the data card; both escape by default."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path, PurePath
from statistics import fmean

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from pipeline.report.auto_select import (
    best_and_worst,
    candidate_name,
    mean_deviation,
    selection_lines,
)
from pipeline.report.describe import (
    correlation,
    count,
    deciles_in_words,
    percent,
    readable,
    score,
    selection_in_words,
)
from pipeline.report.differences import mark_differences
from pipeline.report.evaluation import evaluation_table
from pipeline.report.final_view import rounds, verdict
from pipeline.report.plots import (
    WIDTH,
    Scale,
    agreement_scale,
    coordinate,
    lost_lines,
    shades,
    short_number,
    ticks,
)
from pipeline.report.report_data import SHOWN_DECILES


def render_html(template: str, **values: object) -> Markup:
    """A template as HTML: values are escaped, unless they are `Markup`."""
    return Markup(_html().get_template(template).render(values))


def render_markdown(template: str, **values: object) -> str:
    """A template as Markdown: values become one line of plain text, unless they are `Markdown`."""
    return _markdown().get_template(template).render(values)


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


@cache
def _html() -> Environment:
    environment = _environment(autoescape=True)
    functions: list[Callable[..., object]] = [agreement_scale, evaluation_table, lost_lines]
    functions += [mark_differences, percent, rounds, score, selection_lines, shades, ticks, verdict]
    environment.globals |= {function.__name__: function for function in functions}
    environment.globals |= {"SHOWN_DECILES": SHOWN_DECILES, "Scale": Scale, "WIDTH": WIDTH}
    filters: list[Callable[..., object]] = [best_and_worst, candidate_name, code_spans, coordinate]
    filters += [correlation, deciles_in_words, mean_deviation, readable, selection_in_words]
    filters += [short_number]
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters |= {"file_name": lambda path: PurePath(path).name, "get": dict.get}
    environment.filters["mean"] = fmean
    return environment


@cache
def _markdown() -> Environment:
    environment = _environment(autoescape=False)
    environment.finalize = _plain
    environment.filters |= {"code": code, "table": table}
    return environment


def _environment(*, autoescape: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"count": count, "number": format}
    return environment


def code_spans(words: str) -> Markup:
    """Markdown's code spans as HTML."""
    spans = words.split("`")
    tag = Markup("<code>{}</code>")
    return Markup("").join(tag.format(s) if i % 2 else escape(s) for i, s in enumerate(spans))


def _plain(value: object) -> str:
    """A value as one line of Markdown that shows its text: neither markup nor HTML takes effect.

    >>> _plain("a\\n# <b>*b*")
    'a # &lt;b&gt;\\\\*b\\\\*'
    """
    if isinstance(value, Markdown):
        return value
    line = " ".join(str(value).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"[\\`*\[\]]", r"\\\g<0>", line)


def code(value: object) -> Markdown:
    """A value as a code span on one line; its fence is longer than any backticks in it.

    >>> code("part-*"), code("a`b")
    ('`part-*`', '`` a`b ``')
    """
    line = " ".join(str(value).split())
    ticks = max(map(len, re.findall("`+", line)), default=0)
    space = " " if ticks else ""
    return Markdown(f"{'`' * (ticks + 1)}{space}{line}{space}{'`' * (ticks + 1)}")


def table(rows: Iterable[Sequence[object]], *columns: object) -> Markdown:
    """A Markdown table; it ends in a newline."""
    lines = [columns, [Markdown("---")] * len(columns), *rows]
    escaped = ([_plain(cell).replace("|", "\\|") for cell in line] for line in lines)
    return Markdown("".join(f"| {' | '.join(line)} |\n" for line in escaped))
