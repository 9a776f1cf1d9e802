"""A run with several generators, from a kill to the corpus; and what its configuration may say."""

import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pytest

from paraloom.beam_jobs.engine.shards import write_shard
from paraloom.models.chat.options import Prices
from paraloom.models.errors import UserError
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import Translator
from paraloom.models.scorers import PairScorer
from paraloom.pipeline.cli import main
from paraloom.pipeline.config import Config
from paraloom.pipeline.judging.agreement import conditions, join
from paraloom.pipeline.judging.judgments import Action, JudgeFile, read_judgments
from paraloom.pipeline.judging.sampling import ScoredRun
from paraloom.pipeline.pages.generators import _labels, compare_generators
from paraloom.pipeline.pages.report import document
from paraloom.pipeline.run.folder import read_run
from paraloom.pipeline.stages.generate import check, generators_of
from tests.chat_server import ChatServer, chat_server, reworded
from tests.json_schema import errors_of
from tests.run_helpers import ONE, small_config, started, table

CHAT = {"kind": "chat", "name": "a", "base_url": "http://127.0.0.1:9/v1", "model": "good"}
SECRET = "sk-8f2c-SECRET-77d1"
AT_ONCE = 4


class Finished(NamedTuple):
    folder: Path
    server: ChatServer
    killed_after: int
    arguments: list[str]

    @property
    def run(self) -> str:
        return str(self.folder / "run")


@pytest.fixture(scope="module")
def finished(
    write_config: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Finished]:
    """A run with NMT and two language models that was killed while it asked, and resumed."""
    pytest.importorskip("openai")
    folder = tmp_path_factory.mktemp("generators")
    with chat_server(0.01) as (server, url):
        chats: list[Any] = [
            {**CHAT, "base_url": url, "concurrency": AT_ONCE, "n": 2, "license": "CC0"},
            {**CHAT, "base_url": url, "concurrency": AT_ONCE, "name": "b", "model": "cuts off"},
        ]
        chats[0]["prices"] = {"input": 1.0, "output": 2.0}
        select = {"by": "trigram_overlap", "deciles": None, "per_generator": 0.5}
        changes: Any = {"generators": [{"kind": "nmt"}, *chats], "max_rejected": 0.9}
        path = write_config(folder, select=select, **changes)
        command = ["select", "--config", str(path), *ONE]
        process = started(*command, env={"OPENAI_API_KEY": SECRET})
        while len(server.answered) < 70 and process.poll() is None:
            time.sleep(0.01)
        parent = psutil.Process(process.pid)
        family = [parent, *parent.children(recursive=True)]
        arguments = [word for each in family for word in each.cmdline()]
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.1)
        killed_after = len(server.answered)
        resumed = started(*command, env={"OPENAI_API_KEY": SECRET})
        out, err = resumed.communicate()
        assert resumed.returncode == 0, err
        assert SECRET not in out + err
    yield Finished(folder, server, killed_after, arguments)


def test_a_resumed_run_asks_for_nothing_that_it_has(finished: Finished) -> None:
    assert 70 <= finished.killed_after < 230
    repeated = Counter(finished.server.answered)
    assert len(repeated) == 2 * len(table(finished.folder, "ingest"))
    # The kill may hit while answers are on their way.
    assert repeated.total() - len(repeated) <= 2 * AT_ONCE


def test_every_pair_has_the_candidates_of_all(finished: Finished, nmt_model: Path) -> None:
    pairs, rows = table(finished.folder, "ingest"), table(finished.folder, "generate")
    translated = table(finished.folder, "back_translate")
    # One source is too long for the model, to translate and to score; another may have no end.
    assert 0 < len(pairs) - len(translated) < 5
    counts = Counter(rows["generator"].to_pylist())
    assert counts == {"a": 2 * (len(pairs) - 1), "nmt": len(translated)}
    by_key = {(row["id"], row["candidate"]): row for row in rows.to_pylist()}
    for pair in translated.to_pylist():
        for number in (1, 2):
            made = by_key[pair["id"], number]["translation"]
            assert made == reworded(pair["reference"], number - 1)
    for row in translated.to_pylist():
        assert {**by_key[row["id"], 0], **row} == by_key[row["id"], 0]
    some = [row for row in by_key.values() if row["generator"] == "a"][:20]
    scorer = Translator(nmt_model, NmtOptions(beam=2), threads=1)
    texts = [row["translation"] for row in some]
    scores = scorer.score([row["source"] for row in some], texts)
    assert np.allclose([row["translation_score"] for row in some], scores, atol=1e-4)
    assert [row["translation_subwords"] for row in some] == scorer.subwords_of(texts).tolist()
    reasons = Counter(table(finished.folder, "generate/_rejected")["reason"].to_pylist())
    assert reasons["a: the translation model cannot score it"] == 2


def test_manifest_report_and_card_tell_of_each_generator(finished: Finished) -> None:
    record = read_run(finished.run)
    made = record.stages["generate"].json_values()["generators"]
    pairs = len(table(finished.folder, "ingest"))
    assert made["a"]["requests"] == pairs and made["a"]["tokens_out"] == 10 * pairs
    assert made["a"]["cost"] == pytest.approx((10 * pairs + 2 * 10 * pairs) / 1e6)
    assert made["b"]["rejected"] == {"truncated at max_tokens": pairs}
    found = compare_generators(finished.run, record).tables()
    corpus = Counter(table(finished.folder, "corpus")["generator"].to_pylist())
    assert corpus["nmt"] == corpus["a"] > 0, "no generator has more than its share"
    tables = {shown.title: {row[0]: row[1:] for row in shown.rows} for shown in found}
    general = tables["Generators"]
    counts = {name: f"{rows}" for name, rows in corpus.items()}
    assert {name: cells[2] for name, cells in general.items()} == {**counts, "b": "0"}
    rows = table(finished.folder, "bucket")
    rows = rows.filter(pa.compute.equal(rows["generator"], "a"))
    sides = (rows[side].combine_chunks() for side in ("reference", "translation"))
    f1 = PairScorer(["unigram_f1"]).score(*sides)["unigram_f1"]
    assert general["a"][4] == f"{1 - np.median(f1):.3f}"
    assert float(general["a"][5]) == pytest.approx(1000 * 30 * pairs / 1e6 / corpus["a"], abs=1e-3)
    assert general["nmt"][5] == ""
    quartiles = np.quantile(rows["translation_score"].to_numpy(), [0.25, 0.5, 0.75])
    assert tables["Quartiles of the scores"]["a"][0] == " · ".join(f"{q:.3f}" for q in quartiles)
    assert tables["Rejected candidates"]["b: truncated at max_tokens"] == [f"{pairs}"]
    first = {
        name: {r["id"]: r["translation"] for r in reversed(made_by) if r["generator"] == name}
        for made_by in [table(finished.folder, "bucket").to_pylist()]
        for name in ("nmt", "a")
    }
    texts = zip(*((first["nmt"][id], first["a"][id]) for id in first["nmt"]), strict=True)
    far = 1 - np.median(PairScorer(["unigram_f1"]).score(*map(pa.array, texts))["unigram_f1"])
    assert tables["Distance between generators"] == {"nmt – a": [f"{far:.3f}"]}
    assert tables["Requests and tokens"]["a"][0] == f"{pairs}"
    assert 'id="generators"' in document(finished.run, record)
    card = (finished.folder / "run" / "README.md").read_text()
    assert "Generator `a`: the model `good` (the server names it `tiny-2026`)" in card
    assert "terms of its outputs:\n   CC0." in card


def test_the_command_writes_the_numbers_as_json(finished: Finished, tmp_path: Path) -> None:
    assert main(["generators", finished.run, "--json", str(tmp_path / "x.json")]) == 0
    found = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert errors_of("generators", found) == []
    a, b = found["generators"][1:]
    assert (a["name"], a["asked"]["license"], a["judged"]) == ("a", "CC0", 0)
    assert b["asked"]["rejected"] == {"truncated at max_tokens": b["asked"]["requests"]}
    assert (b["candidates"], b["distance"], b["quartiles"]["trigram_overlap"]) == (0, None, [])
    assert found["generators"][0]["asked"] is None
    assert [of[:2] for of in found["distances"]] == [["nmt", "a"]]


def test_judgments_tell_whose_candidates_are_good(finished: Finished) -> None:
    texts = ("id", "candidate", "reference", "translation")
    pairs = table(finished.folder, "bucket").to_pylist()  # judgments of copies do not count
    rows = [r for r in pairs if r["candidate"] < 2 and r["reference"] != r["translation"]]
    nmt = [row for row in rows if row["generator"] == "nmt"]
    rows = nmt[:10] + [row for row in rows if row["generator"] == "a"][:4]
    scores = [90.0] * 7 + [20.0] * 5 + [80.0] * 2  # 3 and 2 of them are not good
    JudgeFile(finished.run, "Anna").append(
        Action(score=score, **{name: row[name] for name in texts})
        for score, row in zip(scores, rows, strict=True)
    )
    found = compare_generators(finished.run, read_run(finished.run)).tables()
    under = conditions(["generator = a"], ["trigram_overlap"], ["generator"])
    shards = ScoredRun(finished.run).shards()
    judged = join(read_judgments(finished.run), shards, ["trigram_overlap"], own={}, where=under)
    columns, cells = found[0].columns, {row[0]: row[-1] for row in found[0].rows}
    shutil.rmtree(finished.folder / "run" / "judgments")
    assert columns[-1] == "judged good"
    assert sorted(judged.labels) == [20, 20, 80, 80]
    assert cells == {"nmt": "7 of 10 (0.40–0.89)", "a": "2 of 4 (0.15–0.85)", "b": ""}


def test_pairs_of_an_unfinished_corpus_are_not_counted(finished: Finished) -> None:
    record = read_run(finished.run)
    del record.stages["select"]
    found = compare_generators(finished.run, record).generators
    assert {(of.selected, of.share) for of in found} == {(0, None)}


def test_a_judged_copy_is_no_good_candidate(tmp_path: Path) -> None:
    pairs = pa.table(
        {"id": ["1", "2"], "candidate": pa.array([0, 1], pa.int8()), "generator": ["nmt", "nmt"],
         "reference": ["a dog", "a cat"], "translation": ["a dog", "one cat"]}
    )  # fmt: skip
    rows = pairs.drop_columns("generator").to_pylist()
    JudgeFile(str(tmp_path), "Anna").append(Action(score=90, **row) for row in rows)
    shard = write_shard(str(tmp_path / "part-0.parquet"), pairs)
    assert _labels(str(tmp_path), [shard]) == {"nmt": [90]}


def test_the_key_is_nowhere(finished: Finished) -> None:
    assert {request["key"] for request in finished.server.requests} == {SECRET.lower()}
    assert not any(SECRET in word for word in finished.arguments)
    for path in finished.folder.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def config(*generators: dict[str, Any], **changes: Any) -> Config:
    return Config.of(small_config("x", "a.tsv", generators=list(generators), **changes))


@pytest.mark.parametrize(
    ("generators", "message"),
    [
        ([{**CHAT, "base_url": "http://me:word@host/v1"}], r"generators\[0\].base_url: must be an"),
        ([{**CHAT, "base_url": "http://host/v1?key=word"}], "must be an address .* without a user"),
        ([{**CHAT, "api_key": "word"}], "api_key: unknown key; did you mean api_key_env"),
        ([{**CHAT, "api_key_env": "sk-word"}], "api_key_env: must be the name of an environment"),
        ([{**CHAT, "prompt": "rewrite"}], "prompt: 'rewrite' is neither a prompt of Paraloom"),
        ([{**CHAT, "prompt": "{{ reference"}], "prompt: not a template of Jinja2"),
        ([CHAT, CHAT], "generators: two generators have the same name"),
        ([{"kind": "nmt"}, {"kind": "nmt", "name": "x"}], "at most one of kind nmt"),
        ([{"kind": "nmt"}], "needs at least one generator of kind chat"),
        ([{**CHAT, "n": 100}, {**CHAT, "name": "b", "n": 28}], "128 candidates per source exceed"),
    ],
)
def test_what_a_configuration_must_not_say(generators: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        config(*generators)
    assert "word@" not in str(error.value) and "sk-word" not in str(error.value)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            "Reword {{ referenc }}",
            "a: prompt: 'referenc' is undefined; known names are id, json, ",
        ),
        ("Reword it {{ n }} times", "a: prompt: it names no column; known names are "),
        ("{% for i in range(n) %}{{ reference }}{% endfor %}", ""),
        ("{% if domain is defined %}{{ domain }}{% endif %}: {{ source }}", ""),
        ("reword", ""),
    ],
)
def test_prompts_are_checked_before_anything_is_translated(prompt: str, message: str) -> None:
    pytest.importorskip("openai")
    given = config({**CHAT, "prompt": prompt})
    error: Any = nullcontext()
    if message:
        error = pytest.raises(UserError, match=re.escape(message))
    with error:
        check(given)


def test_licence_and_prices_are_those_of_now(finished: Finished) -> None:
    record = read_run(finished.run)
    prices = Prices(input=0, output=3)
    now = [record.config.chats[0].replace(license="MIT", prices=prices), *record.config.chats[1:]]
    record.config = record.config.model_copy(update={"generators": now})
    found, pairs = generators_of(record), len(table(finished.folder, "ingest"))
    assert found["a"].license == "MIT" and found["b"].license is None
    assert found["a"].cost == pytest.approx(3 * 10 * pairs / 1e6)
    assert found["b"].cost is None and found["b"].rejected


def test_translation_score_needs_a_translation_model() -> None:
    score = {"scorers": ["translation_score", "trigram_overlap"]}
    with pytest.raises(ValueError, match=r"score.scorers: translation_score needs a translation"):
        config(CHAT, score=score)
    assert not config(CHAT).variant["nmt"]
    assert config(CHAT, score=score, nmt={"model": "m"}).variant["nmt"]
    assert config({"kind": "nmt"}, CHAT, score=score).variant["nmt"]


def test_a_share_must_be_possible() -> None:
    select = {"by": "trigram_overlap", "per_generator": 0.4}
    with pytest.raises(ValueError, match=r"select.per_generator: must be at least 0.5 with 2 gen"):
        config({"kind": "nmt"}, CHAT, select=select)
    with pytest.raises(ValueError, match=r"select.per_generator: needs several generators"):
        Config.of({**config(CHAT).model_dump(exclude={"generators"}), "select": select})
    with pytest.raises(ValueError, match=r"select.named.a.per_generator: must be at least 0.5"):
        config({"kind": "nmt"}, CHAT, select={"by": "trigram_overlap", "named": {"a": select}})
