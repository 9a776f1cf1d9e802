"""Templates as HTML, for the report, and as Markdown, for the cards.

Values are escaped: in HTML unless they are `Markup`, in Markdown to plain text on one line unless
they are `Markdown`.
"""

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePath
from statistics import fmean

import pyarrow as pa
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from paraloom.models.printing import visible
from paraloom.pipeline.judging import describe as judged
from paraloom.pipeline.pages import describe, differences, plots
from paraloom.pipeline.pages.describe import cleaned, correlation, decoding
from paraloom.pipeline.pages.shown import last_name, model_name, reasons, served_name


def render_html(template: str, **values: object) -> Markup:
    """A template of `templates/` as HTML."""
    return Markup(_html().get_template(template).render(values))


def environment(*, autoescape: bool) -> Environment:
    """An environment with the templates."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"count": "{:,}".format, "number": format}
    return made


@cache
def _html() -> Environment:
    """The environment of the report: its modules' functions are functions and filters."""
    made = environment(autoescape=True)
    functions = {
        name: function
        for module in (describe, differences, judged, plots)
        for name, function in vars(module).items()
        if getattr(function, "__module__", "") == module.__name__ and callable(function)
    }
    made.globals |= functions
    made.globals |= {"WIDTH": plots.WIDTH, "zip": zip}
    made.filters |= {**functions, "code_spans": code_spans, "get": dict.get, "mean": fmean}
    made.filters["file_name"] = lambda path: PurePath(path).name
    return made


def code_spans(words: str) -> Markup:
    """Markdown's code spans as HTML."""
    spans = words.split("`")
    tag = Markup("<code>{}</code>")
    return Markup("").join(tag.format(s) if i % 2 else escape(s) for i, s in enumerate(spans))


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def render_markdown(template: str, **values: object) -> str:
    """A template of `templates/` as Markdown."""
    return _markdown().get_template(template).render(values)


@cache
def _markdown() -> Environment:
    made = environment(autoescape=False)
    made.finalize = plain
    made.filters |= {
        function.__name__: function
        for function in (cleaned, code, correlation, decoding, last_name, model_name, reasons)
    }
    made.filters |= {"markdown": Markdown, "served_name": served_name}
    made.filters |= {"type_name": type_name, "when": when, "yaml": as_yaml}
    return made


def plain(value: object) -> Markdown:
    """A value as one line of Markdown that shows its text: neither markup nor HTML takes effect.

    >>> plain("a\\n# <b>*b*")
    'a # &lt;b&gt;\\\\*b\\\\*'
    """
    if isinstance(value, Markdown):
        return value
    line = visible(" ".join(str(value).split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markdown(re.sub(r"[\\`*\[\]|]", r"\\\g<0>", line))


def code(value: object) -> Markdown:
    """A value as a code span on one line; its fence is longer than any backticks in it.

    >>> code("part-*"), code("a`b")
    ('`part-*`', '`` a`b ``')
    """
    line = visible(" ".join(str(value).split()))
    ticks = max(map(len, re.findall("`+", line)), default=0)
    space = " " if ticks else ""
    return Markdown(f"{'`' * (ticks + 1)}{space}{line}{space}{'`' * (ticks + 1)}")


def type_name(of: pa.DataType) -> str:
    """A column's type; the type of a kept column is known to its files only."""
    return {pa.null(): "as in the bitext", pa.float32(): "float32"}.get(of, str(of))


def as_yaml(values: object) -> Markdown:
    """Values in YAML's block style; it ends in a newline."""
    return Markdown(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=10**6))


def when(seconds: float) -> str:
    """A date (UTC).

    >>> when(1.8e9)
    '2027-01-15'
    """
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
