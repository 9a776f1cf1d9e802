"""Jinja2 environments: HTML for the report, Markdown for the data card; both escape by default."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path, PurePath
from statistics import fmean

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from paraloom.models.printing import visible
from paraloom.pipeline.judging import describe as judged
from paraloom.pipeline.report import describe, differences, plots, savings
from paraloom.pipeline.report.final_view import rounds, verdict


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
    """The functions of the report's modules are functions and filters in templates."""
    environment = _environment(autoescape=True)
    modules = (describe, differences, judged, plots, savings)
    functions = {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if getattr(function, "__module__", "") == module.__name__ and callable(function)
    }
    environment.globals |= {**functions, "rounds": rounds, "verdict": verdict}
    environment.globals |= {"WIDTH": plots.WIDTH, "zip": zip}
    environment.filters |= {**functions, "code_spans": code_spans, "get": dict.get, "mean": fmean}
    environment.filters["file_name"] = lambda path: PurePath(path).name
    return environment


@cache
def _markdown() -> Environment:
    environment = _environment(autoescape=False)
    environment.finalize = plain
    own = {"code": code, "table": table, "markdown": Markdown}
    environment.filters |= {**own, "decoding": describe.decoding}
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
    environment.filters |= {"count": "{:,}".format, "number": format}
    return environment


def code_spans(words: str) -> Markup:
    """Markdown's code spans as HTML."""
    spans = words.split("`")
    tag = Markup("<code>{}</code>")
    return Markup("").join(tag.format(s) if i % 2 else escape(s) for i, s in enumerate(spans))


def plain(value: object) -> Markdown:
    """A value as one line of Markdown that shows its text: neither markup nor HTML takes effect.

    >>> plain("a\\n# <b>*b*")
    'a # &lt;b&gt;\\\\*b\\\\*'
    """
    if isinstance(value, Markdown):
        return value
    line = visible(" ".join(str(value).split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markdown(re.sub(r"[\\`*\[\]]", r"\\\g<0>", line))


def code(value: object) -> Markdown:
    """A value as a code span on one line; its fence is longer than any backticks in it.

    >>> code("part-*"), code("a`b")
    ('`part-*`', '`` a`b ``')
    """
    line = visible(" ".join(str(value).split()))
    ticks = max(map(len, re.findall("`+", line)), default=0)
    space = " " if ticks else ""
    return Markdown(f"{'`' * (ticks + 1)}{space}{line}{space}{'`' * (ticks + 1)}")


def table(rows: Iterable[Sequence[object]], *columns: object) -> Markdown:
    """A Markdown table, whole numbers with separators; it ends in a newline."""

    def shown(cell: object) -> str:
        return plain(f"{cell:,}" if isinstance(cell, int) else cell).replace("|", "\\|")

    lines = [columns, [Markdown("---")] * len(columns), *rows]
    return Markdown("".join(f"| {' | '.join(map(shown, line))} |\n" for line in lines))
