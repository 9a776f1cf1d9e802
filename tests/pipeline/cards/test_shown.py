"""What cards and releases show of the manifest."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.options import InputFile
from paraloom.pipeline.cards.shown import harmless, public
from paraloom.pipeline.config import Config
from paraloom.pipeline.records import RunRecord, StageRecord
from paraloom.pipeline.stages.generate import GenerateRecord

NAMES = st.text(st.sampled_from("abc.-_ é"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/Jane Doe/data/train.gz", "train.gz"),
        ("/home/jane/train/", "train"),
        ("C:\\Users\\jane\\train.gz", "train.gz"),
        ("s3://key:word@host/a.gz?signature=x", "a.gz"),
        ("https://me:word@host/a.gz?token=x", "a.gz"),
    ],
)
def test_of_a_path_only_the_name_is_shown(path: str, name: str) -> None:
    config = {"input": {"paths": {"source": [path]}}, "nmt": {"model": path}, "run": path}
    shown = {"input": {"paths": {"source": [name]}}, "nmt": {"model": name}, "run": name}
    assert harmless(config, Config) == shown


@given(st.lists(NAMES, min_size=2, max_size=5), st.sampled_from(["/", "~/", "../", "s3://h/"]))
def test_of_any_path_only_the_name_is_shown(names: list[str], root: str) -> None:
    assert harmless(root + "/".join(names), InputFile) == names[-1]


EVERYWHERE: dict[str, Any] = {
    "token": "sesame",
    "accelerator": "sesame",
    "nmt": {"engine": "sesame", "beam": 5, "pin": 1234, "hub": {"auth": "sesame"}},
    "score": {"commands": {"c": " /opt/sesame/python m.py --key sesame"}},
    "embeddings": {"initial_vectors": "/sesame/v.txt", "dim": 30, "pairs": [{"key": "sesame"}]},
}


def test_what_is_not_known_is_not_shown() -> None:
    assert harmless(EVERYWHERE, Config) == {
        "nmt": {"beam": 5},
        "score": {"commands": {"c": "python"}},
        "embeddings": {"initial_vectors": "v.txt", "dim": 30, "pairs": [{}]},
    }
    record = {"key": "ab12", "rows_in": 3, "note": "sesame", "metrics": {"n": 2, "host": "sesame"}}
    kind = StageRecord.classes["ingest"]
    assert harmless(record, kind) == {"key": "ab12", "rows_in": 3, "metrics": {"n": 2}}


def test_numbers_choices_and_conditions_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paraloom.models.embeddings.options.KNOWN", [EmbeddingOptions])
    config = Config.of(
        {
            "run": "mine",
            "input": {"format": "tsv", "paths": ["a.tsv"], "where": ["token_ratio in 0.5..2"]},
            "nmt": {"model": "cs-en", "device": "cpu", "candidates": 2},
            "score": {"scorers": ["trigram_overlap"]},
            "select": {"by": "trigram_overlap", "where": ["trigram_overlap <= 0.5"]},
            "embeddings": {"tags": "start", "model": "lstm-avg"},
        }
    ).model_dump()
    assert harmless(config, Config) == config


def test_a_record_is_still_one() -> None:
    scorer = {"meaning": "computed by the command /x/python m.py --key sesame", "unit": "score"}
    stages = {
        "score": {"scorers": {"c": scorer}},
        "back_translate": {"model": {"path": "me/cs-en", "revision": "0a1", "sha256": "1"}},
        "pivot": {"model": {"path": "../me/en-cs", "sha256": "1", "revision": "0a1"}},
        "sentence_model": {"model": {"path": "me/mini", "sha256": "1"}},
        "new": {"key": "k", "rows": 3},
    }
    inputs = [{"path": "/home/me/a.gz", "sha256": "2", "host": "sesame"}]
    values = {"config": EVERYWHERE, "inputs": inputs, "stages": stages, "user": "sesame"}
    shown = public(RunRecord.model_validate(values)).json_values()
    assert "sesame" not in str(shown)
    assert shown["inputs"] == [{"path": "a.gz", "sha256": "2"}]
    found = shown["stages"]
    assert found["score"]["scorers"]["c"]["meaning"] == "computed by the program python"
    assert found["back_translate"]["model"]["path"] == "me/cs-en"
    assert found["pivot"]["model"]["path"] == "en-cs"
    assert found["sentence_model"]["model"]["path"] == "mini"  # a folder in the current one
    assert found["new"] == {"key": "k"}


def test_of_a_generator_all_is_shown_but_its_server_and_its_key() -> None:
    chat = {
        **{"kind": "chat", "name": "a", "model": "owner/tiny:free", "prompt": "{{ source }}: say"},
        **{"temperature": 0.5, "prices": {"input": 1.0, "output": 2.0}, "license": "CC0"},
    }
    hidden = {
        "base_url": "http://sesame:80/v1",
        "api_key_env": "SESAME",
    }
    nmt = {"kind": "nmt", "name": "nmt"}
    made = {
        **{"model": "/sesame/tiny", "models": ["/sesame/tiny@main", "a/b"], "prompt": "reword"},
        **{"prompt_text": "Say: {{ source }}", "license": "CC0", "first": 1.5},
        "rejected": {"no answer: HTTP 400: at sesame": 1, "no answer: HTTP 400: ask sesame": 2},
    }
    reasons = {"a: no answer: SSLError: not sesame": 1, "a: no answer: no response within 1 s": 2}
    stages = {"generate": {"rejected": reasons, "generators": {"a": made}}}
    config = {"generators": [nmt, chat | hidden]}
    shown = public(RunRecord.model_validate({"config": config, "stages": stages}))
    assert "sesame" not in json.dumps(shown.json_values()).lower()
    assert shown.config.generators == [nmt, chat]
    found = shown.find(GenerateRecord)
    assert found is not None
    assert found.rejected == {
        "a: no answer: SSLError": 1,
        "a: no answer: no response within 1 s": 2,
    }
    assert found.generators["a"].json_values() == {
        **made,
        **{"model": "tiny", "models": ["tiny@main", "a/b"]},
        "rejected": {"no answer: HTTP 400": 3},
    }
