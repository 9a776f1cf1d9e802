"""What is said of a corpus that is empty, small, or of near-copies."""

from pathlib import Path

import pyarrow as pa

from paraloom.pipeline.cli import main
from paraloom.pipeline.config import read_config
from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.library import run
from paraloom.pipeline.pages.describe import near_copies
from paraloom.pipeline.run.folder import read_run
from paraloom.pipeline.run.notices import of_training
from paraloom.pipeline.run.records import PairsRecord
from tests.run_helpers import Capsys, WriteConfig, again, rewrite


def test_no_pair_is_an_error_before_anything_is_trained(a_run: Path, capsys: Capsys) -> None:
    wanted = ["--set", "select.where=['trigram_overlap > 1']", "--set", "select.deciles=null"]
    command = ["corpus", "--config", str(a_run / "config.yaml"), *wanted]
    for _ in range(2):
        assert main([*command, "--", "--direct_num_workers", "1"]) == 2
        said = capsys.readouterr().err.splitlines()
        assert "pairs is selected: " in said[-1]
        assert "not trigram_overlap > 1" in said[-1]
        assert not [line for line in said if line.startswith("embeddings")]
    assert not (a_run / "run/embeddings").exists()
    card = a_run / "run/README.md"
    assert not card.exists()  # the earlier corpus is gone
    assert again("select", a_run) == 0 and card.exists()
    assert main([*command, "--", "--direct_num_workers", "1"]) == 2
    assert "not trigram_overlap" in (a_run / "run/report/index.html").read_text("utf-8")


def test_no_pair_was_left_to_select_from(a_run: Path, capsys: Capsys) -> None:
    rewrite(a_run, "bucket", lambda pairs: pairs.slice(0, 0))
    assert again("select", a_run) == 2
    said = "earlier stages rejected all rows; see their folders _rejected/"
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"paraloom: select: none of 0 pairs is selected: {said}"


def near_copy(pairs: pa.Table) -> pa.Table:
    """Pairs of nine words and a number: one word differs."""
    for side, word in (("reference", "nine"), ("translation", "ten")):
        texts = [f"one two three four five six seven eight {word} {id}" for id in pairs["id"]]
        where = pairs.schema.get_field_index(side)
        pairs = pairs.set_column(where, pairs.schema.field(where), pa.array(texts))
    return pairs


def test_near_copies_are_said(a_run: Path, capsys: Capsys) -> None:
    rewrite(a_run, "bucket", near_copy)
    assert again("select", a_run, "--set", "select.deciles=null") == 0
    out, report = capsys.readouterr().out, (a_run / "run/report/index.html").read_text()
    record = read_run(str(a_run / "run"))
    corpus, config = record.find(PairsRecord, "select"), record.config
    assert corpus and corpus.unigram_f1 == 0.9
    advice = near_copies(corpus, config)
    assert advice[:50] in out
    assert advice[:50] in report
    assert advice.endswith("to select.where, and content_overlap to score.scorers")
    config.score.scorers.append("content_overlap")
    assert near_copies(corpus, config).endswith("add 'content_overlap <= 0.8' to select.where")
    bound = config.model_copy(update={"select": SelectOptions(where=["content_overlap <= 0.9"])})
    assert near_copies(corpus, bound).endswith("lower the bound of content_overlap in select.where")
    assert not near_copies(PairsRecord(unigram_f1=0.8), bound)
    assert not near_copies(PairsRecord(), bound)


def test_word_vectors_of_no_word_are_said(tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "pairs.tsv").write_text("a dog barks\ta dog is barking\n")
    (tmp_path / "vectors.txt").write_text("Hund 1 2\nKatze 2 1\n")
    name = "paragram_similarity"
    run(
        {
            "run": str(tmp_path / "run"),
            "input": {"format": "pairs", "paths": [str(tmp_path / "pairs.tsv")]},
            "score": {"scorers": [name], "paragram": str(tmp_path / "vectors.txt")},
            "select": {"by": name},
        },
        "score",
        beam=["--direct_num_workers", "1"],
    )
    assert f"score: {name} of the first pairs is 0; use " in capsys.readouterr().err


def test_few_pairs_and_random_vectors_are_said(tmp_path: Path, write_config: WriteConfig) -> None:
    def said(pairs: int, *, own_vectors: bool, **embeddings: str) -> list[str]:
        config = read_config(str(write_config(tmp_path, embeddings=embeddings)))
        return list(of_training(config, pairs, own_vectors=own_vectors))

    assert said(10_000, own_vectors=True) == []
    (few,) = said(9_999, own_vectors=True)
    assert "9,999 pairs are few" in few and "random" not in few
    (both,) = said(58, own_vectors=False)
    assert "58 pairs are few" in both and "random vectors" in both
    (random,) = said(10_000, own_vectors=False)
    assert random.startswith("embeddings: the encoder starts from random vectors")
    assert said(10_000, own_vectors=False, initial_vectors=str(tmp_path / "config.yaml")) == []
