"""Markdown from templates: values become plain text on one line, unless they are `Markdown`."""

import re
from datetime import UTC, datetime
from functools import cache

import pyarrow as pa
import yaml
from jinja2 import Environment

from paraloom.models.printing import visible
from paraloom.pipeline.pages.describe import cleaned, correlation, decoding
from paraloom.pipeline.pages.render import environment
from paraloom.pipeline.pages.shown import last_name, model_name, reasons, served_name


class Markdown(str):
    """Text that is Markdown already."""

    __slots__ = ()


def render_markdown(template: str, **values: object) -> str:
    """A template of `report/templates` as Markdown."""
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
