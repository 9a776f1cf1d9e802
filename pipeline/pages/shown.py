"""The parts of a run that cards and releases show, without paths, addresses and secrets."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from paraloom.models.hub import is_hub_name
from paraloom.pipeline.run.records import RunRecord, UsedModel

_SHOWN = {
    "input": "format columns keep subset split shard_rows source_language "
    "target_language license clean where unique near_duplicates",
    "nmt": "beam candidates no_repeat_ngram repetition_penalty compute_type batch_tokens "
    "max_source_subwords sampling training",
    "select": "by precision good deciles max_tokens size per_source per_generator max_overlap "
    "where near_duplicates exclude_similarity auto",
    "loop": "rounds",
}
"""The configuration keys that a release shows, by section."""

_GENERATOR = "kind name response n temperature top_p seed max_tokens license prices"
_ERROR = re.compile(r"(no answer: (?:HTTP \d+|\w+)): .*", re.DOTALL)
"""Matches a reason that ends with a server's message, which may contain addresses."""


def shown_configuration(record: RunRecord) -> dict[str, Any]:
    """Return the part of a run's configuration that a release shows."""
    config = record.config.model_dump(mode="json")
    shown = {name: _known(config[name], of) for name, of in _SHOWN.items() if config.get(name)}
    generators = [_known(each, _GENERATOR) for each in config.get("generators") or ()]
    own = {"run": run_name(record), "seed": record.config.seed}
    return {**own, **shown, "generators": generators, "scorers": record.config.score.names}


def run_name(record: RunRecord) -> str:
    """Return the name of the run folder. In a named selection, add the selection's name."""
    kind, _, name = record.place.partition("/")
    return last_name(record.config.run) + f"-{name}" * (kind == "selections")


def last_name(path: str) -> str:
    """Return the last name of a path or an address.

    >>> last_name("/home/jane/train/"), last_name("https://me:word@host/a.gz?token=x")
    ('train', 'a.gz')
    """
    return re.split(r"[/\\]", path.partition("?")[0].rstrip("/\\"))[-1]


def without_folders(value: Any) -> Any:
    """Return the values that are not None, with each path shortened to its last name."""
    if isinstance(value, Mapping):
        return {key: without_folders(of) for key, of in value.items() if of is not None}
    if isinstance(value, list):
        return list(map(without_folders, value))
    return last_name(value) if isinstance(value, str) else value


def model_name(model: UsedModel) -> str:
    """Return the name of a model on the Hub, or the name of the model's folder."""
    return model.path if model.revision and is_hub_name(model.path) else last_name(model.path)


def served_name(model: str) -> str:
    """Return the name of a model on a server. For a path, return the last name of the path.

    >>> served_name("owner/tiny:free"), served_name("/models/tiny")
    ('owner/tiny:free', 'tiny')
    """
    return last_name(model) if re.match(r"[/\\~.]|\w+:[/\\]", model) else model


def reasons(rejected: Mapping[str, int]) -> dict[str, int]:
    """Count rejected rows by reason, without the messages of servers."""
    found = Counter[str]()
    for reason, rows in rejected.items():
        found[_ERROR.sub(r"\1", reason)] += rows
    return dict(found)


def _known(values: Mapping[str, Any], keys: str) -> dict[str, Any]:
    return {key: values[key] for key in keys.split() if key in values}
