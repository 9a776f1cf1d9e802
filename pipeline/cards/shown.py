"""What a card and a release show of a run's record."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from paraloom.models.chat.usage import SERVED
from paraloom.models.hub import is_hub_name
from paraloom.models.options import InputPath
from paraloom.pipeline.config import Config
from paraloom.pipeline.records import RunRecord, UsedModel

TEXTS = {
    *("digest", "digests", "key", "sha256", "versions", "revision", "family", "license"),
    *("planned", "wanted", "stage", "meaning", "unit", "where", "keep", "subset", "split"),
    *("prompt", "prompt_text"),
}
"""The keys of texts that a release shows as they are."""

NAMES = {
    *("run", "path", "model", "models", "name", "missing", "idf", "spacy", "scorers", "scorer"),
    *("score", "by", "first", "second", "negative"),
    *("language", "source_language", "target_language"),
}
"""The keys of names and paths, of which it shows the last name."""

_HIDDEN = object()
_PATH = re.compile(r"[/\\~.]|\w+:[/\\]")  # its beginning
_ERROR = re.compile(r"(no answer: (?:HTTP \d+|\w+)): .*", re.DOTALL)
"""A reason with the words of a server or of a connection, which may hold addresses."""


def public(record: RunRecord) -> RunRecord:
    """The part of a run's record that a release shows."""
    values = record.json_values()
    config = harmless(values.get("config", {}), Config)
    stages = {name: harmless(of.json_values(), type(of)) for name, of in record.stages.items()}
    for name, stage in record.stages.items():
        for scorer in stages[name].get("scorers", {}).values():
            if scorer["meaning"].startswith("computed by the command "):  # with its arguments, 0.2
                scorer["meaning"] = "computed by a program"
        model = getattr(stage, "model", None)
        if isinstance(model, UsedModel) and model.revision and is_hub_name(model.path):
            stages[name]["model"]["path"] = model.path
    made = stages.get("generate", {})
    for counted in (made, *made.get("generators", {}).values()):
        if "rejected" in counted:
            reasons = Counter[str]()
            for reason, rows in counted["rejected"].items():
                reasons[_ERROR.sub(r"\1", reason)] += rows
            counted["rejected"] = dict(reasons)
    shown = {**harmless(values, RunRecord), "config": config, "stages": stages}
    return RunRecord.model_validate(shown)


def harmless(value: Any, kind: Any, key: str = "") -> Any:
    """JSON values of a type: what it declares, and of texts only choices, `TEXTS` and `NAMES`.

    >>> harmless({"run": "/home/me/runs/a", "token": "x", "seed": 2}, Config)
    {'run': 'a', 'seed': 2}
    """
    if isinstance(value, dict):
        kinds = _kinds(kind, value, key)
        shown = {n: harmless(of, *kinds[n]) for n, of in value.items() if n in kinds}
        return {name: of for name, of in shown.items() if of is not _HIDDEN}
    if isinstance(value, list | tuple):
        return [of for item in value if (of := harmless(item, kind, key)) is not _HIDDEN]
    parts = list(_parts(kind))
    if not isinstance(value, str) or value in parts or key in TEXTS:
        return value
    if SERVED in parts and not _PATH.match(value):
        return value
    if key not in NAMES and not any(isinstance(part, InputPath) for part in parts):
        return _HIDDEN
    return re.split(r"[/\\]", value.partition("?")[0].rstrip("/\\"))[-1]


def _kinds(kind: Any, names: Iterable[str], key: str) -> dict[str, tuple[Any, str]]:
    """The type of each value of a mapping, and the key that decides on its texts."""
    found: dict[str, tuple[Any, str]] = {}
    for part in _parts(kind):
        if get_origin(part) is dict:
            return dict.fromkeys(names, (get_args(part)[1], key))
        if isinstance(part, type) and issubclass(part, BaseModel):
            for name, field in part.model_fields.items():
                of = field.rebuild_annotation()
                for alias in {name, field.serialization_alias or name}:
                    known = found.get(alias, (of, ""))[0]  # of another class of a union
                    found[alias] = (known | of, name)
    return found or dict.fromkeys(names, (Any, key))


def _parts(kind: Any) -> Iterator[Any]:
    """A type and all that it is made of, choices too, the outermost first."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)
