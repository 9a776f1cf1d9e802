"""The configuration `triplets`: its negatives, a kill, and a training with it."""

import json
import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.embeddings.applications import opened
from paraloom.models.embeddings.applications.hard_negatives import Bounds
from paraloom.models.files import locked
from paraloom.models.scorers.learned import sentence_similarity
from paraloom.models.text import parses
from paraloom.pipeline.cli import main
from paraloom.pipeline.release import triplets
from paraloom.pipeline.release.release import files_of
from paraloom.pipeline.release.triplets import KINDS, Block, Rows, TripletOptions, makers
from tests.models.scorers.small_transformers import write_sentence_model
from tests.models.text.test_changes import BITES, OLD, TWO, parsed
from tests.run_helpers import Patch, calls_of, changed_record

pytest.importorskip("faiss", reason="faiss is not installed")

# Source, reference, translation, and the angle of the translation in degrees; all references are
# at 0. The translations say why they are no negatives of the first pair.
PAIRS = [
    ("s0", "A dog.", "The dog!", 5),
    ("s1", "r1", "too near", 10),
    ("s0", "r2", "of the same source", 31),
    ("s3", "a dog", "of the same reference", 32),
    ("s4", "r4", "a DOG", 33),  # the anchor
    ("s5", "r5", "the dog", 34),  # the positive
    ("s6", "The dog", "of a pair whose reference is the positive", 35),
    ("s7", "r7", "the right one", 36),
    ("s8", "r8", "a further one", 37),
    ("s9", "r9", "too far", 61),
]
BOUNDS = Bounds(min_score=0.5, max_score=0.9, relative_margin=0)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: Patch) -> Rows:
    """The pairs in blocks of four, and a model with these angles."""
    angles = {text: angle for _, _, text, angle in PAIRS}

    def embed(texts: pa.Array) -> np.ndarray:
        at = np.radians([angles.get(text, 0) for text in texts.to_pylist()])
        return np.stack([np.cos(at), np.sin(at)], axis=1)

    def open_model(name: str, option: str) -> Any:
        return SimpleNamespace(evaluated=SimpleNamespace(embed=embed))

    monkeypatch.setattr(opened, "open_model", open_model)
    monkeypatch.setattr(triplets, "_ROWS", 4)
    table = pa.table(list(zip(*PAIRS, strict=True))[:3], ["source", "reference", "translation"])
    pq.write_table(table, tmp_path / "rows.parquet")
    return Rows([tmp_path / "rows.parquet"], tmp_path / "work", seed=1)


def near(rows: Rows, **options: Any) -> list[str | None]:
    (maker,) = makers(rows, TripletOptions(kinds=("near",), bounds=BOUNDS, **options))
    return [text for block in rows.blocks() for text in maker(block)["near"]]


def test_the_nearest_that_is_neither_too_near_nor_known(rows: Rows) -> None:
    found = near(rows)
    assert found[0] == "the right one" and len(found) == len(PAIRS)
    assert found[9] is None  # its own positive has a cosine of 0.485, below which none may be


def test_pairs_without_a_source_do_not_share_one(rows: Rows) -> None:
    (file,) = rows.files
    table = pq.read_table(file)
    pq.write_table(table.set_column(0, "source", pa.array([""] * len(table))), file)
    assert near(rows)[0] == "of the same source"  # which it no longer is


def test_a_cross_encoder_has_a_veto(rows: Rows, monkeypatch: Patch) -> None:
    def score(pairs: Any, model: str) -> np.ndarray:
        assert model == "opened folder"
        texts = pairs.translation_text.to_pylist()
        return np.array([0.95 if text == "the right one" else 0.7 for text in texts], np.float32)

    monkeypatch.setattr(sentence_similarity, "open_cross_encoder", lambda path: f"opened {path}")
    monkeypatch.setattr(sentence_similarity, "cross_encoder", score)
    assert near(rows, cross_encoder="folder")[0] == "a further one"


def test_changes_of_the_positive(rows: Rows, tmp_path: Path, monkeypatch: Patch) -> None:
    docs = [parsed(text) for text in (TWO, OLD, BITES)]
    parser = SimpleNamespace(language="en", pipeline=SimpleNamespace(max_length=99))
    parser.parse = lambda texts: docs[: len([*texts])]
    monkeypatch.setattr(parses, "Parser", lambda name: parser)
    options = TripletOptions(kinds=("roles", "number", "negation"))
    (maker,) = makers(rows, options)
    same = pa.array([doc.text for doc in docs])
    found = maker(Block(0, same, same))
    assert found["roles"] == [None, None, "A man bites a dog in Rome today."]
    assert found["negation"] == [None, "An old man is not running.", None]
    assert found["number"] == maker(Block(0, same, same))["number"] and found["number"][0]
    parser.language = "de"
    with pytest.raises(Exception, match="parses de, not English"):
        list(makers(rows, options))
    TripletOptions(kinds=("near",)).check("de")
    with pytest.raises(Exception, match="roles: for English only; use near"):
        TripletOptions(kinds=("near", "roles")).check("de")


def test_what_equals_a_side_is_left_out() -> None:
    sides = pa.array(["Two dogs.", "A cat."]), pa.array(["Three dogs.", "The cat."])

    def make(block: Block) -> dict[str, list[str | None]]:
        return {"one": ["two dogs", "No cat."], "other": ["Five dogs.", None]}

    table = triplets._triplets(Block(0, *sides), [make])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("Two dogs.", "Three dogs.", "Five dogs.", "other"),
        ("A cat.", "The cat.", "No cat.", "one"),
    ]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_sentence_model(tmp_path_factory.mktemp("small") / "model"))


def publish(run: Path, *options: str) -> int:
    return main(["publish", str(run), "--held-out", "0.3", "--triplets", "near", *options])


def test_negatives_of_a_selection_are_found_by_the_runs_encoder(run: Path, model: str) -> None:
    shutil.copytree(run / "corpus", run / "selections/x/corpus")
    shutil.copytree(model, run / "embeddings")
    with changed_record(run) as content:
        content["config"]["select"]["named"] = {"x": {"deciles": [4, 5, 6, 7, 8]}}
        content["stages"]["selections/x/select"] = content["stages"]["select"]
        content["stages"]["embeddings"] = {}
    loose = ("--min-score", "-1", "--max-score", "1", "--relative-margin", "0")
    assert publish(run, "--selection", "x", *loose) == 0
    assert [*(run / "release-x/triplets").glob("train-*")]


def test_the_release_trains_without_paraloom(
    run: Path, corpus: list[dict[str, Any]], model: str, tmp_path: Path, datasets: Any
) -> None:
    loose = ("--min-score", "-1", "--max-score", "1", "--relative-margin", "0")
    assert publish(run, "--triplets-model", model, *loose) == 0
    release = run / "release"
    assert not [*run.glob(".release*")]
    names = {"path": str(release), "cache_dir": str(tmp_path / "cache")}
    found = datasets.load_dataset(**names, name="triplets")
    full = datasets.load_dataset(**names)
    assert set(found) == {"train", "test"}
    for split, data in found.items():
        assert data.column_names == ["anchor", "positive", "negative", "kind"] and len(data)
        pairs = {(row["reference"], row["translation"]) for row in full[split]}
        assert {(row["anchor"], row["positive"]) for row in data} <= pairs
        assert {*data["negative"]} <= {*full[split]["translation"]}
        sources: dict[str, set[str]] = {}
        for row in full[split]:
            for text in (row["reference"], row["translation"]):
                sources.setdefault(text, set()).add(row["source"])
        assert all(sources[r["anchor"]].isdisjoint(sources[r["negative"]]) for r in data)
    counted = Counter(kind for data in found.values() for kind in data["kind"])
    about = json.loads((release / "provenance/release.json").read_text())
    assert about["triplets"] == dict(counted)
    card = (release / "README.md").read_text("utf-8")
    assert f"| `near` | {KINDS['near']} | {counted['near']} |" in card
    assert "similarities were computed with model." in card and str(tmp_path) not in card

    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers.losses import MultipleNegativesRankingLoss, TripletLoss
    from sentence_transformers.training_args import SentenceTransformerTrainingArguments

    data = found["train"].remove_columns("kind")
    for loss in (MultipleNegativesRankingLoss, TripletLoss):
        trained = SentenceTransformer(model, device="cpu")
        before = trained.encode(["a dog"])
        SentenceTransformerTrainer(
            model=trained,
            args=SentenceTransformerTrainingArguments(
                output_dir=str(tmp_path / "out"), max_steps=20, per_device_train_batch_size=4,
                learning_rate=0.01, report_to="none", save_strategy="no", disable_tqdm=True,
                use_cpu=True,
            ),
            train_dataset=data,
            loss=loss(trained),
        ).train()  # fmt: skip
        after = trained.encode(["a dog"])
        assert np.isfinite(after).all() and not np.allclose(before, after)


def test_a_killed_release_goes_on(run: Path, model: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(triplets, "_ROWS", 16)
    loose = ("--triplets-model", model, "--min-score", "-1", "--max-score", "1")
    assert publish(run, *loose, "--out", str(run / "whole")) == 0
    made: list[int] = []
    make = triplets._triplets

    def killed(block: Block, opened: Any) -> pa.Table:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(block.start)
        return make(block, opened)

    monkeypatch.setattr(triplets, "_triplets", killed)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(publish(run, *loose))
    assert made == [0, 16] and not (run / "release").exists()

    monkeypatch.setattr(triplets, "_triplets", make)
    again = calls_of(monkeypatch, triplets, "_triplets")
    damaged = next((run / ".release.triplets").glob("*/*.16.parquet"))
    damaged.write_bytes(bytes(damaged.stat().st_size))
    with locked(run / ".release.triplets" / ".lock"):
        assert publish(run, *loose) == 2 and not again
    assert publish(run, *loose) == 0
    starts = Counter(block.start for block in again)
    assert (starts[0], starts[16]) == (1, 2)  # once in the other split, and the damaged one
    for name in files_of(run / "whole"):
        assert (run / "whole" / name).read_bytes() == (run / "release" / name).read_bytes()
    assert publish(run, "--triplets-model", model, "--min-score", "2") == 2  # no pair has one


def test_a_release_goes_on_with_the_same_model_only(
    run: Path, model: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Another one may lie at the same path."""
    own = Path(shutil.copytree(model, tmp_path / "own"))
    made = calls_of(monkeypatch, triplets, "_triplets")
    killed = SimpleNamespace(
        rmtree=lambda path, **_: None
    )  # at the end, before it removes the blocks
    monkeypatch.setattr(triplets, "shutil", killed)
    loose = ("--triplets-model", str(own), "--min-score", "-1", "--max-score", "1")
    for changed in (True, False, True):
        made.clear()
        if changed:
            (own / "further.txt").write_text(f"{len([*own.iterdir()])} files")
        assert publish(run, *loose) == 0
        assert bool(made) == changed
