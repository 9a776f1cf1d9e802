"""What is cleaned out of the manifest."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import UserError
from pipeline.config.documentation import schema
from pipeline.publishing.provenance import check_no_traces, cleaned
from pipeline.records import Lenient, RunRecord, StageRecord

NAMES = st.text(st.sampled_from("abc.-_ é"), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ("/home/Jane Doe/data/train.gz", "train.gz"),
        ("~/data/train.gz", "train.gz"),
        ("../../jane/train.gz", "train.gz"),
        ("C:\\Users\\jane\\train.gz", "train.gz"),
        ("gs://bucket/train.gz", "train.gz"),
        ("s3://key:word@host/a.gz?signature=x", "a.gz"),
        ("/home/jane/own.py:my_scorer", "own.py:my_scorer"),
        ("IDF from /home/jane/idf.txt (12 words)", "IDF from idf.txt (12 words)"),
        ("from https://jane:word@host/a", "from https://host/a"),
        ("hf_abcdefghijklmnopqrstuvwx", "removed"),
        ("AKIAABCDEFGHIJKLMNOP", "removed"),
        ("runs/multi30k", "runs/multi30k"),
        ("Helsinki-NLP/opus-mt-cs-en@main", "Helsinki-NLP/opus-mt-cs-en@main"),
        ("trigram_overlap <= 0.5", "trigram_overlap <= 0.5"),
        ("and/or; log p / subwords", "and/or; log p / subwords"),
        ("cc-by-4.0", "cc-by-4.0"),
    ],
)
def test_texts(given_: str, expected: str) -> None:
    assert cleaned(given_) == expected
    assert cleaned({given_: [given_]}) == {expected: [expected]}


SECRETS = """
    token hub_token password api_key AWS_SECRET apiKey APIKey apikey X-API-Key private_key
    ssh.private.key key_id privateKeyPem secretAccessKey access_keys auth authToken auth_header
    http-auth Authorization credentials db_passwd passphrase token_value hubToken2 cookie PWD
"""


@pytest.mark.parametrize("key", SECRETS.split())
def test_keys_of_secrets(key: str) -> None:
    assert cleaned({"a": [{key: "x"}]}) == {"a": [{key: "removed"}]}
    assert cleaned({key: None}) == {key: None}


def test_other_values_stay() -> None:
    values: dict[str, Any] = {"max_tokens": 30, "batch_tokens": None, "key": "ab12", "f": 0.5}
    assert cleaned(values) == values


def names(of: Any) -> set[str]:
    """All names of keys in a JSON Schema, at any depth."""
    inner = of.values() if isinstance(of, dict) else of
    found = set(of.get("properties", ())) if isinstance(of, dict) else set()
    nested = (names(value) for value in inner if isinstance(value, dict | list))
    return found.union(*nested)


def test_the_keys_of_configurations_and_manifests_stay() -> None:
    records: list[type[Lenient]] = [RunRecord, *StageRecord.classes.values()]
    found = names(schema()).union(*(names(kind.model_json_schema()) for kind in records))
    assert found >= {"batch_tokens", "max_tokens", "key"}
    values: dict[str, Any] = dict.fromkeys(found, "x")
    values |= {"token_ratio in 0.5..1.25": 3, "unknown_tokens": 1, "tokenizer": "x", "author": "x"}
    assert cleaned(values) == values


@given(st.lists(NAMES, min_size=2, max_size=5), st.sampled_from(["/", "~/", "../", "s3://h/"]))
def test_of_a_path_only_the_name_stays(names: list[str], root: str) -> None:
    assert cleaned(root + "/".join(names)) == names[-1]


def test_a_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/jane"))
    check_no_traces("README.md", "a card of /home/janet/")
    for text in ("see /home/jane/x", "hf_abcdefghijklmnopqrstuvwx"):
        with pytest.raises(UserError, match=r"README\.md: would hold a secret or a path"):
            check_no_traces("README.md", text)
