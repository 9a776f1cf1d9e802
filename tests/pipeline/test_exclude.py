"""Evaluation sentences are kept out of the corpus, and `paraloom contamination` counts them."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.engine.shards import read_shard, receipts
from paraloom.beam_jobs.transforms.exclusion import EvaluationSentences, embed
from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus.select import scored
from paraloom.pipeline.commands.run.contamination import contamination
from paraloom.pipeline.config import read_config
from paraloom.pipeline.pages.cards import data_card
from paraloom.pipeline.pages.describe import excluded_rows
from paraloom.pipeline.run.folder import read_run
from paraloom.pipeline.run.records import PairsRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages.selection.exclude import fingerprint, read_data_sets, sentences_of
from tests.beam_jobs.transforms.test_exclusion import Letters
from tests.json_schema import errors_of
from tests.run_helpers import Capsys, again, one_line, refusal, rewrite, table


def write_sets(folder: Path, sentences: list[str]) -> Path:
    """Two data sets in the form of STS: one of given sentences, one of others."""
    (folder / "sts").mkdir(exist_ok=True)
    lines = [f"5\t{sentence.upper()}\tno sentence of this corpus {i}\n" for i, sentence in
             enumerate(sentences)]  # fmt: skip
    (folder / "sts" / "own.tsv").write_text("".join(lines))
    (folder / "sts" / "other.tsv").write_text("1\tnobody says that ever\tnor does one this\n")
    return folder / "sts"


def test_a_run_leaves_evaluation_sentences_out(a_run: Path, capsys: Capsys) -> None:
    before = table(a_run, "corpus", "id", "reference", "translation")
    leaked = before["reference"].to_pylist()[3:9]
    sets = write_sets(a_run, leaked)
    exclude = ["--set", f"select.exclude=['{sets}']"]
    config = read_config(a_run / "config.yaml", exclude[1:])
    with pytest.raises(UserError, match="--dry-run needs the stage exclude"):
        scored(config)

    assert again("select", a_run, *exclude) == 0
    kept = {row["id"]: row for row in table(a_run, "corpus").to_pylist()}
    found = {
        row["id"]: row["reason"]
        for receipt in receipts(str(a_run / "run/corpus"))
        for shard in receipt.rejected_shards
        for row in read_shard(shard).to_pylist()
    }
    for row in before.to_pylist():
        if row["reference"] in leaked:
            number = leaked.index(row["reference"]) + 1
            assert found[row["id"]] == f"in sts/own (equal), row {number}"
        assert (row["id"] in kept) == (not found.get(row["id"], "").startswith("in sts/own"))

    record = read_run(str(a_run / "run"))
    corpus = record.find(PairsRecord, "select")
    assert corpus and corpus.rows_in == corpus.rows_out + sum(corpus.rejected.values())
    rejected = corpus.rejected
    equal, ngrams = (rejected.get(f"in sts/own ({rule})", 0) for rule in ("equal", "n-grams"))
    assert equal >= len(leaked) and equal + ngrams == len(before) - len(kept)
    counted = [("sts/other", 2, [0, 0, 0]), ("sts/own", 2 * len(leaked), [equal, ngrams, 0])]
    assert excluded_rows(record) == counted
    assert f"| `sts/own` | {2 * len(leaked)} | {equal} | {ngrams} | 0 |" in data_card(record, 1)
    assert "sts/own" in (a_run / "run/report/index.html").read_text()
    # Another content of the same file makes the corpus again; without the key it is as before.
    write_sets(a_run, ["nothing of the corpus here"])
    assert again("select", a_run, *exclude) == 0
    assert table(a_run, "corpus", "id", "reference", "translation") == before
    assert "sts/own" not in json.dumps(read_run(str(a_run / "run")).stages["select"].json_values())
    write_sets(a_run, leaked)
    shards, criteria = scored(read_config(a_run / "config.yaml"))
    assert shards and criteria.exclude is None
    capsys.readouterr()

    against = ["--against", str(write_sets(a_run, leaked))]
    out = a_run / "found.json"
    assert main(["contamination", str(a_run / "run"), *against, "--json", str(out)]) == 0
    said = capsys.readouterr().out
    values = json.loads(out.read_text())
    assert errors_of("contamination", values) == []
    assert values["rows"] == len(before) and values["found"] == equal + ngrams
    assert values["data_sets"]["sts/own"]["equal"] == equal
    assert f"{equal + ngrams} of {len(before)} rows contain a sentence of these data sets" in said
    assert f"sts/own, row 1: {leaked[0].upper()}" in said
    # The folder of the stage also has rejected rows, and the folder of a release further files.
    assert main(["publish", str(a_run / "run"), "--license", "mit"]) == 0
    for folder in ("corpus", "release"):
        assert main(["contamination", str(a_run / "run" / folder), *against]) == 0
        assert f"\n{equal + ngrams} of {len(before)} rows contain" in capsys.readouterr().out


def test_a_renamed_data_set_is_read_again(a_run: Path) -> None:
    """The reasons name it."""
    sets = write_sets(a_run, ["some sentence or other"])
    run = Run(read_config(a_run / "config.yaml", [f"select.exclude=['{sets}']"]))
    before = fingerprint(run)
    (sets / "own.tsv").rename(sets / "theirs.tsv")
    assert fingerprint(run) != before


def test_rows_are_counted_in_each_data_set(tmp_path: Path) -> None:
    """Once in a data set, by the first rule that holds; a row with several columns once, too."""
    for name, lines in {
        "a": ["a dog runs in the snow", "a dog runs in the snow today", "A dog runs in the snow!"],
        "b": ["a dog runs in the snow and on", "two short words"],
    }.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    (tmp_path / "corpus.tsv").write_text(
        "A dog runs in the snow.\ta dog runs in the snow today\n"
        "nothing is here at all\tTwo short words\n"
        "nothing is here at all\tthree short words\n"
    )
    data = read_data_sets([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])
    assert sentences_of(data) == {"a": 2, "b": 2}
    corpus = str(tmp_path / "corpus.tsv")
    counts, rows, shown = contamination(corpus, EvaluationSentences(data), examples=1)
    assert counts.tolist() == [[1, 0, 0], [1, 1, 0], [2, 0, 0]] and rows == 3
    assert [where for where, *_ in shown["equal"]] == ["corpus.tsv, row 1"]
    assert not shown["n-grams"]
    model: Any = Letters("dgq")  # of which `two` and `three` have the same
    similar = model, embed(model, data["text"].combine_chunks()), 0.999
    counts, rows, shown = contamination(corpus, EvaluationSentences(data, similar), examples=5)
    assert counts.tolist() == [[1, 0, 0], [1, 1, 1], [2, 0, 1]]
    equal, ngrams, alike = shown.values()
    assert [where for where, *_ in equal] == [f"corpus.tsv, row {row}" for row in (1, 1, 2)]
    assert not ngrams
    texts = [(where, text) for where, text, _ in alike]
    assert texts == [("corpus.tsv, row 3", "three short words")]


def test_a_row_has_the_sentences_of_its_lists_once(tmp_path: Path) -> None:
    """Files of one name in two folders are two data sets."""
    for folder, text in (("one", "a dog runs in the snow"), ("two", "the cat sits over there")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test.tsv").write_text(f"\t{text}\t{text} today\n")
    lists = [["A dog runs in the snow.", "a dog runs in the snow"], ["nothing is here at all"]]
    rows = {"text": ["the cat sits over there", "a hat is not a cat"], "further": lists}
    pq.write_table(pa.table(rows), tmp_path / "corpus")
    data = read_data_sets([str(tmp_path / "one/test.tsv"), str(tmp_path / "two/test.tsv")])
    assert sentences_of(data) == {"one/test": 2, "two/test": 2}
    sentences = EvaluationSentences(data)
    counts, rows_in, shown = contamination(str(tmp_path / "corpus"), sentences, examples=9)
    assert counts.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 0]] and rows_in == 2
    assert [of["data_set"] for *_, of in shown["equal"]] == ["two/test", "one/test", "one/test"]


def test_a_corpus_in_progress_is_not_searched(a_run: Path, capsys: Capsys) -> None:
    """Before `select` is finished, its folder has only some of the pairs."""
    sets = write_sets(a_run, ["some sentence or other"])
    shutil.copytree(a_run / "run/corpus", a_run / "run/selections/one/corpus")
    (a_run / "run/corpus/_stage.json").unlink()
    named = ["contamination", str(a_run / "run/selections/one"), "--against", str(sets)]
    assert main(named) == 0 and "rows contain" in capsys.readouterr().out
    error = refusal(capsys, "contamination", str(a_run / "run"), "--against", str(sets))
    assert "the run has no corpus yet" in error


def test_part_files_without_sentences_are_searched(a_run: Path, capsys: Capsys) -> None:
    """A small part file may have only texts of one or two words, or no row."""
    sets, texts = write_sets(a_run, ["good day"]), ("source", "reference", "translation")

    def short(kept: int, part: pa.Table) -> pa.Table:
        rows = [row | dict.fromkeys(texts, "Good day!") for row in part.slice(0, kept).to_pylist()]
        return pa.Table.from_pylist(rows, part.schema)

    for kept in (1, 0):
        rewrite(a_run, "select", partial(short, kept))
        left = len(table(a_run, "select"))
        assert main(["contamination", str(a_run / "run"), "--against", str(sets)]) == 0
        assert f"\n0 of {left} rows contain" in capsys.readouterr().out


def test_similar_sentences_need_a_model(a_run: Path, capsys: Capsys) -> None:
    sets = write_sets(a_run, ["some sentence or other"])
    keys = ["--set", f"select.exclude=['{sets}']", "--set", "select.exclude_similarity=0.9"]
    assert again("select", a_run, *keys) == 2
    assert "score.sentence_model: is missing" in one_line(capsys)
    assert main(["contamination", str(sets), "--against", str(sets), "--similarity", "0.9"]) == 2
    assert "give both --similarity and --model" in one_line(capsys)


def test_empty_rows_of_a_data_set_are_no_sentences(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("three words here\n...\n\nThree WORDS here.\nand three more\n")
    assert read_data_sets([str(tmp_path / "a.txt")]) == pa.table(
        {"data_set": ["a", "a"], "row": [1, 5], "text": ["three words here", "and three more"]}
    )
