"""Prompts: Jinja2 templates that are filled with a pair and its languages."""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from paraloom.models.errors import UserError, one_line
from paraloom.models.languages import name_with_script

_ENVIRONMENT = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_FORM = """\
{% if json %}Answer with a JSON object that has one key, "paraphrases": a list of {{ n }} \
different sentence{{ "s" if n > 1 }}, and nothing else.\
{% else %}Answer with the sentence alone, on one line, without quotation marks or comments.\
{% endif %}"""

PROMPTS = {
    "translate": "Translate this sentence from {{ source_language }} into {{ target_language }}. "
    + _FORM
    + "\n\n{{ source }}",
    "paraphrase": "Write a paraphrase of this {{ target_language }} sentence, in "
    "{{ target_language }}. Keep its whole meaning, add nothing and leave nothing out. "
    + _FORM
    + "\n\n{{ reference }}",
    "reword": "Say the same as this {{ target_language }} sentence, in {{ target_language }}, with "
    "other words and another sentence structure: share as few words with it as you can. Keep its "
    "whole meaning, names and numbers. " + _FORM + "\n\n{{ reference }}",
}


class Prompt(NamedTuple):
    """A Jinja2 template. Its name is a key of `PROMPTS`, or `template` for a user's text."""

    name: str
    text: str

    @property
    def names(self) -> set[str]:
        """Names of the variables in the template."""
        return meta.find_undeclared_variables(_ENVIRONMENT.parse(self.text))

    def render(self, row: Mapping[str, Any], **more: Any) -> str:
        """Fill the template with the columns of a pair and with further variables.

        >>> Prompt("", "Reword: {{ reference }}").render({"reference": "A dog."})
        'Reword: A dog.'
        """
        try:
            return str(_compiled(self.text).render(row, **more)).strip()
        except Exception as error:  # template expressions may raise anything
            known = f"known names are {', '.join([*row, *more])}"
            raise UserError(f"prompt {self.name}: {one_line(error)}; {known}") from error


def variables(source: str, target: str, *, n: int, json: bool) -> dict[str, Any]:
    """Return the variables that prompts may contain besides columns of the pair."""
    return {
        "source_language": name_with_script(source),
        "target_language": name_with_script(target),
        "n": n,
        "json": json,
    }


def find_template(prompt: str) -> Prompt:
    """Find a prompt by its name in `PROMPTS`, or make a prompt from a user's template.

    Raise a ValueError if `prompt` is neither a name nor a template.
    """
    if prompt in PROMPTS:
        return Prompt(prompt, PROMPTS[prompt])
    if "{{" not in prompt:
        known = ", ".join(PROMPTS)
        raise ValueError(
            f"prompt: {prompt!r} is neither a prompt of Paraloom ({known}) nor a template with "
            "{{ source }} or {{ reference }}"
        )
    try:
        _compiled(prompt)
    except TemplateError as error:
        raise ValueError(f"prompt: not a template of Jinja2 ({one_line(error)})") from error
    return Prompt("template", prompt)


@cache
def _compiled(text: str) -> Any:
    return _ENVIRONMENT.from_string(text)
