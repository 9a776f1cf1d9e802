"""Rendering of templates as HTML for the report and as Markdown for the cards.

In HTML, all values except `Markup` are escaped. In Markdown, all values except `Markdown` become
plain text on one line.
"""

import re
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import regex
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from rapidfuzz.distance import LCSseq

from paraloom.beam_jobs.transforms.exclusion import RULES
from paraloom.models.languages import ENGLISH, is_unspaced, language_name, short_code
from paraloom.models.printing import visible
from paraloom.models.scorers import ENCODER
from paraloom.pipeline.judging import describe as judged
from paraloom.pipeline.pages import describe, plots, shown
from paraloom.pipeline.stages.selection import resolve_auto

_WORD = regex.compile(r"(\w+|(?!\s)\X)")  # in `regex`, vowel signs are parts of words
_CHARACTER = regex.compile(r"([A-Za-z0-9]+|(?!\s)\X)")
_MARK, _PLAIN = Markup("<mark>{}</mark>"), Markup("{}")


def render_html(template: str, **values: object) -> Markup:
    """Render a template of `templates/` as HTML."""
    return Markup(_environment(html=True).get_template(template).render(values))


def render_markdown(template: str, **values: object) -> str:
    """Render a template of `templates/` as Markdown."""
    return _environment(html=False).get_template(template).render(values)


def environment(**options: Any) -> Environment:
    """Return a Jinja environment that loads the templates."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    made.filters |= {"count": "{:,}".format, "number": format}
    return made


@cache
def _environment(*, html: bool) -> Environment:
    """Return an environment in which templates can call the functions of several modules."""
    made = environment(autoescape=html, finalize=None if html else plain)
    modules = (describe, judged, plots, shown, sys.modules[__name__])
    functions = {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if getattr(function, "__module__", "") == module.__name__ and callable(function)
    }
    functions |= {f.__name__: f for f in (is_unspaced, language_name, resolve_auto, short_code)}
    made.globals |= {**functions, "RULES": RULES, "ENCODER": ENCODER, "zip": zip}
    made.globals["WIDTH"] = plots.WIDTH
    made.filters |= {**functions, "get": dict.get, "markdown": Markdown, "mean": fmean}
    return made


def mark_differences(first: str, second: str, language: str = ENGLISH) -> tuple[Markup, Markup]:
    """Return two texts as HTML, with <mark> around words outside their longest common subsequence.

    Case is ignored. Texts in languages without spaces are compared by characters.

    >>> for html in mark_differences("A dog runs.", "a big dog runs."):
    ...     print(html)
    A dog runs.
    a <mark>big</mark> dog runs.
    """
    token = _CHARACTER if is_unspaced(language) else _WORD
    parts = [token.split(text) for text in (first, second)]  # words have odd indices
    words = [[part.lower() for part in of[1::2]] for of in parts]
    html, done = [escape(of[0]) for of in parts], [0, 0]
    for block in LCSseq.opcodes(*words).as_matching_blocks():  # the last block is empty
        for side, start in enumerate((block.a, block.b)):
            end = start + block.size
            for tag, low, high in ((_MARK, done[side], start), (_PLAIN, start, end)):
                if low < high:
                    html[side] += tag.format("".join(parts[side][2 * low + 1 : 2 * high]))
                    html[side] += parts[side][2 * high]
            done[side] = end
    return html[0], html[1]


def code_spans(words: str) -> Markup:
    """Return a text as HTML, with the code spans of Markdown as <code>."""
    spans = words.split("`")
    tag = Markup("<code>{}</code>")
    return Markup("").join(tag.format(s) if i % 2 else escape(s) for i, s in enumerate(spans))


class Markdown(str):
    """Text that is rendered as Markdown."""

    __slots__ = ()


def plain(value: object) -> Markdown:
    """Return a value as one line of Markdown, with markup and HTML escaped.

    >>> plain("a\\n# <b>*b*")
    'a # &lt;b&gt;\\\\*b\\\\*'
    """
    if isinstance(value, Markdown):
        return value
    line = visible(" ".join(str(value).split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markdown(re.sub(r"[\\`*\[\]|]", r"\\\g<0>", line))


def code(value: object) -> Markdown:
    """Return a value as a code span on one line.

    >>> code("part-*"), code("a`b")
    ('`part-*`', '`` a`b ``')
    """
    line = visible(" ".join(str(value).split()))
    ticks = max(map(len, re.findall("`+", line)), default=0)
    space = " " if ticks else ""
    return Markdown(f"{'`' * (ticks + 1)}{space}{line}{space}{'`' * (ticks + 1)}")


def type_name(of: pa.DataType) -> str:
    """Return the name of a column's type. The null type stands for the type in the bitext."""
    return {pa.null(): "as in the bitext", pa.float32(): "float32"}.get(of, str(of))


def as_yaml(values: object) -> Markdown:
    """Return values as YAML in block style, with a newline at the end."""
    return Markdown(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=10**6))


def when(seconds: float) -> str:
    """Format seconds since the epoch as a date in UTC, such as 2027-01-15."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
