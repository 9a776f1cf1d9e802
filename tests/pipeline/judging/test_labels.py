"""Labelled files of other forms, with labels from 0 to 100."""

from pathlib import Path

import numpy as np
import pytest

from paraloom.beam_jobs.bucket import decile_ranks
from paraloom.models.agreement.precision import exact_deciles
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.models.scorers import PairScorer
from paraloom.models.scorers.plugins import FileScorer
from paraloom.pipeline.judging.agreement import JudgedPairs
from paraloom.pipeline.judging.labels import default_names, read_labels, score_labels

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
JUDGED = "reference_id\treference\tparaphrase\tscore\tfluency\n"


def write(folder: Path, text: str, name: str = "labels.tsv") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_mrpc(tmp_path: Path) -> None:
    found = read_labels(write(tmp_path, MRPC + '1\t5\t6\tHe "ran.\tHe ran off.\n0\t7\t8\ta\tb\n'))
    assert found.labels.tolist() == [100, 0]
    assert found.first.to_pylist() == ['He "ran.', "a"]
    assert found.second.to_pylist() == ["He ran off.", "b"]
    assert found.references.tolist() == ['He "ran.', "a"]


def test_judgments_with_and_without_ids_of_references(tmp_path: Path) -> None:
    found = read_labels(write(tmp_path, JUDGED + "4\ta\tb\t98.8\t2\n4\tA\tc\t0\t1\n"))
    assert found.labels.tolist() == [98.8, 0]
    assert found.references.tolist() == ["4", "4"]
    plain = "score\ttranslation\treference\n50\tb\ta\n"
    found = read_labels(write(tmp_path, plain))
    assert (found.first.to_pylist(), found.second.to_pylist()) == (["a"], ["b"])
    assert found.references.tolist() == ["a"]


def test_sts_and_sick(tmp_path: Path) -> None:
    found = read_labels(write(tmp_path, "5\ta\tb\n2.5\tc\td\n\te\tf\n"))
    assert found.labels.tolist() == [100, 50]
    (tmp_path / "2012").mkdir()
    for name, lines in (("OnWN", "4\tg\th\n"), ("images", "1\ti\tj\n0\tk\tl\n")):
        write(tmp_path / "2012", lines, f"{name}.tsv")
    found = read_labels(str(tmp_path / "2012"))
    assert found.labels.tolist() == [80, 20, 0]
    assert found.references.tolist() == found.first.to_pylist() == ["g", "i", "k"]
    assert found.second.to_pylist() == ["h", "j", "l"]
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n"
    found = read_labels(write(tmp_path, head + "1\ta\tb\t1\n2\ta\tc\t4\n"))
    assert found.labels.tolist() == [0, 75]
    assert found.references.tolist() == ["a", "a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JUDGED + "1\ta\tb\t101\t2\n", "row 2: score 101 is not a number from 0 to 100"),
        (JUDGED + "1\ta\tb\tnan\t2\n", "row 2: score nan is not"),
        (MRPC + "2\t5\t6\ta\tb\n", "row 2: Quality 2 is not a number from 0 to 1"),
        (MRPC, "no row with a label"),
    ],
)
def test_a_wrong_file_is_named_with_its_row(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match="labels.tsv.*" + message.replace("(", r"\(")):
        read_labels(write(tmp_path, text))


def test_scores_are_the_scorers_and_copies_are_left_out(tmp_path: Path) -> None:
    lines = [f"{i % 6}\tthe dog runs {i}\tthe dog ran {i * 7 % 40}\n" for i in range(40)]
    texts = read_labels(write(tmp_path, "".join(["5\tsame\tsame\n", *lines])))
    pairs = score_labels(texts, default_names(), language=ENGLISH, resources={})
    assert pairs.counts == {"copies": 1, "where": [], "outside": 0}
    assert pairs.labels.tolist() == [20 * (i % 6) for i in range(40)]
    assert pairs.references.tolist() == [f"the dog runs {i}" for i in range(40)]
    expected = PairScorer(["unigram_f1"]).score(texts.first[1:], texts.second[1:])["unigram_f1"]
    assert pairs.scores["unigram_f1"].tolist() == expected.tolist()
    assert pairs.rows["unigram_f1"] == [4] * 10
    assert not pairs.higher_is_better["edit_distance"]


def test_pairs_that_do_not_meet_a_condition_do_not_count(tmp_path: Path) -> None:
    lines = [f"{i % 6}\tthe dog runs {i}\tthe dog ran {i * 7 % 40}\n" for i in range(40)]
    texts = read_labels(write(tmp_path, "".join(lines)))

    def scored(*where: str) -> JudgedPairs:
        names = ["unigram_f1", "edit_distance"]
        return score_labels(texts, names, language=ENGLISH, resources={}, where=where)

    every, some = scored(), scored("unigram_f1 <= 0.5", "edit_distance_decile in 2..9")
    meets = (every.scores["unigram_f1"] <= 0.5) & (every.deciles["edit_distance"] >= 2)
    assert some.labels.tolist() == every.labels[meets].tolist()
    assert some.deciles["edit_distance"].tolist() == every.deciles["edit_distance"][meets].tolist()
    assert 0 < sum(some.rows["edit_distance"]) == meets.sum() < 40
    assert some.counts["outside"] == 40 - meets.sum()
    with pytest.raises(UserError, match="--where: bleu is no column of the pairs"):
        scored("bleu <= 1")


def test_the_language_says_what_a_token_is(tmp_path: Path) -> None:
    texts = read_labels(write(tmp_path, "5\tl'homme\thomme\n0\ta\tb\n"))
    for language, f1 in (("fr", 2 / 3), ("en", 0)):
        pairs = score_labels(texts, ["unigram_f1"], language=language, resources={})
        assert pairs.scores["unigram_f1"].tolist() == pytest.approx([f1, 0])


@pytest.mark.parametrize("number", ["nan", "-inf"])
def test_one_pair_without_a_number_is_said(tmp_path: Path, number: str) -> None:
    texts = read_labels(write(tmp_path, "5\ta\tb\n0\tc\td\n"))
    code = "from paraloom.models.scorers import Scorer\n"
    code += f"s = Scorer(function=lambda pairs: [0.5, float('{number}')], meaning='', unit='')"
    sources = [FileScorer("s", "s.py", code)]
    with pytest.raises(UserError, match="--labels: s gives a pair no number"):
        score_labels(texts, ["s"], sources=sources, language=ENGLISH, resources={})


def test_scores_that_need_more_are_left_out_and_named(tmp_path: Path) -> None:
    texts = read_labels(write(tmp_path, "5\ta\tb\n0\tc\td\n"))
    names = ["unigram_f1", "reference_score", "paragram_similarity", "translation_score", "comet"]
    pairs = score_labels(texts, names, language=ENGLISH, resources={})
    assert list(pairs.scores) == ["unigram_f1"]
    assert pairs.left_out["reference_score"] == "needs the source of each pair"
    assert pairs.left_out["paragram_similarity"].startswith("needs word vectors")
    assert pairs.left_out["translation_score"] == "needs the model that translated"
    assert pairs.left_out["comet"] == "is not computed from the two texts"
    with pytest.raises(UserError, match="no score can be computed on this file: comet is not"):
        score_labels(texts, ["comet"], language=ENGLISH, resources={})


def test_deciles_begin_where_those_of_a_run_do() -> None:
    sizes = np.bincount(exact_deciles(np.arange(25.0)))
    assert sizes.tolist() == np.diff([0, *decile_ranks(25), 25]).tolist()
