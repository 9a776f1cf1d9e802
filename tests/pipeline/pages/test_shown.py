"""What cards and releases show of a run: names without folders, known keys only."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.pipeline.pages.shown import last_name, model_name, reasons, shown_configuration
from paraloom.pipeline.records import RunRecord, UsedModel

NAMES = st.text(st.sampled_from("abc.-_ é"), min_size=1, max_size=6)


@given(st.lists(NAMES, min_size=2, max_size=5), st.sampled_from(["/", "~/", "../", "s3://h/"]))
def test_of_any_path_only_the_name_is_shown(names: list[str], root: str) -> None:
    assert last_name(root + "/".join(names)) == names[-1]
    assert last_name("C:\\" + "\\".join(names)) == names[-1]
    assert last_name(f"https://me:word@host/{'/'.join(names)}?token=x") == names[-1]


@pytest.mark.parametrize(
    ("path", "revision", "name"),
    [
        ("me/cs-en", "0a1", "me/cs-en"),
        ("me/cs-en", None, "cs-en"),
        ("/me/cs-en", "0a1", "cs-en"),
        ("s3://me/cs-en", "0a1", "cs-en"),
    ],
)
def test_only_models_of_the_hub_have_their_owner(path: str, revision: str, name: str) -> None:
    assert model_name(UsedModel(path=path, revision=revision)) == name


def test_what_is_not_known_is_not_shown() -> None:
    chat = {"kind": "chat", "name": "a", "n": 2, "temperature": 0.5, "license": "CC0"}
    hidden = {"base_url": "http://sesame:80/v1", "api_key_env": "SESAME", "model": "/sesame"}
    config: dict[str, Any] = {
        "run": "/home/sesame/runs/mine",
        "token": "sesame",
        "seed": 3,
        "input": {"license": "CC0", "paths": ["/sesame/a.gz"], "where": ["token_ratio <= 2"]},
        "nmt": {"model": "/sesame/cs-en", "beam": 5, "hub": {"auth": "sesame"}},
        "generators": [{"kind": "nmt", "name": "nmt"}, chat | hidden],
        "score": {"scorers": ["length", "/home/sesame/own.py:mine"], "paragram": "/sesame/v.txt"},
        "select": {"by": "length", "deciles": [9], "labelled": "/sesame/sts"},
        "embeddings": {"pairs": [{"key": "sesame"}]},
    }
    shown = shown_configuration(RunRecord.model_validate({"config": config, "stages": {}}))
    assert "sesame" not in str(shown).lower()
    assert shown == {
        "run": "mine",
        "seed": 3,
        "input": {"license": "CC0", "where": ["token_ratio <= 2"]},
        "nmt": {"beam": 5},
        "select": {"by": "length", "deciles": [9]},
        "generators": [{"kind": "nmt", "name": "nmt"}, chat],
        "scorers": ["length", "mine"],
    }


def test_reasons_are_without_the_words_of_servers() -> None:
    found = {"a: no answer: SSLError: not at sesame": 1, "a: no answer: HTTP 400: sesame": 1}
    more = {"a: no answer: no response within 1 s": 2, "a: no answer: HTTP 400: of sesame": 2}
    assert reasons(found | more) == {
        "a: no answer: SSLError": 1,
        "a: no answer: HTTP 400": 3,
        "a: no answer: no response within 1 s": 2,
    }
