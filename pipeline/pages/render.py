"""Jinja2 environments of the report and the cards, and HTML, which escapes by default."""

from functools import cache
from pathlib import Path, PurePath
from statistics import fmean

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from paraloom.pipeline.final_view import rounds, verdict
from paraloom.pipeline.judging import describe as judged
from paraloom.pipeline.pages import describe, differences, plots


def render_html(template: str, **values: object) -> Markup:
    """A template as HTML: values are escaped, unless they are `Markup`."""
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
    """The functions of the report's modules are functions and filters in templates."""
    made = environment(autoescape=True)
    functions = {
        name: function
        for module in (describe, differences, judged, plots)
        for name, function in vars(module).items()
        if getattr(function, "__module__", "") == module.__name__ and callable(function)
    }
    made.globals |= {**functions, "rounds": rounds, "verdict": verdict}
    made.globals |= {"WIDTH": plots.WIDTH, "zip": zip}
    made.filters |= {**functions, "code_spans": code_spans, "get": dict.get, "mean": fmean}
    made.filters["file_name"] = lambda path: PurePath(path).name
    return made


def code_spans(words: str) -> Markup:
    """Markdown's code spans as HTML."""
    spans = words.split("`")
    tag = Markup("<code>{}</code>")
    return Markup("").join(tag.format(s) if i % 2 else escape(s) for i, s in enumerate(spans))
