import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.embeddings.datasets.similarity import (
    missing,
    read_labelled,
    read_sick,
    read_sts,
)
from paraloom.models.errors import UserError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_real_data(data: Path) -> None:
    sets = read_sts(data / "sts")
    sizes = {(pairs.group, pairs.name): (len(pairs.scores), pairs.unscored) for pairs in sets}
    assert len(sizes) == 20
    assert sizes["STS 2012", "MSRpar"] == (750, 0)
    assert sizes["STS 2012 train", "MSRpar"] == (750, 0)
    assert sizes["STS 2015", "belief"] == (375, 1625)
    assert sizes["STS 2015", "images"] == (750, 750)
    assert missing(sets) == {"STS 2012": ["MSRvid"], "STS 2013": ["SMT"]}
    (dev,) = read_sts(data / "stsb")
    assert (dev.group, dev.name, len(dev.scores)) == ("stsb", "sts-dev", 1500)
    assert (dev.first[0].as_py(), dev.scores[0]) == ("A man with a hard hat is dancing.", 5.0)
    train, trial = read_sick(data / "sick")
    found = [(len(of), of.group, of.name) for of in (train, trial)]
    assert found == [(4500, "SICK", "train"), (500, "SICK", "trial")]
    assert missing([train, trial]) == {"SICK": ["test"]} and trial.scores[0] == 3.6


@pytest.mark.parametrize("name", ["track5.en-en", "en-en", "STS.input.track5.en-en"])
def test_the_english_set_of_2017(tmp_path: Path, name: str) -> None:
    file = tmp_path / "2017" / f"{name}.tsv"
    write(tmp_path / "blobs/1234", "5\tx\ty\n")
    file.parent.mkdir()
    file.symlink_to(tmp_path / "blobs/1234")  # as in the Hub's cache
    (english,) = read_sts(tmp_path)
    assert (english.group, english.name) == ("STS 2017", "track5.en-en")
    assert missing([english]) == {}


def test_sick_columns_are_found_by_name(tmp_path: Path) -> None:
    head = "sentence_A\textra\trelatedness_score\tsentence_B\r\n"
    write(tmp_path / "SICK_test_annotated.txt", f"{head}A dog\tx\t4.25\tA cat\r\n")
    (test,) = read_sick(tmp_path)
    assert (test.name, test.first[0].as_py(), test.second[0].as_py()) == ("test", "A dog", "A cat")
    assert test.scores.tolist() == [4.25]


def test_a_flat_folder_of_files_is_one_group(tmp_path: Path) -> None:
    write(tmp_path / "labelled" / "a.tsv", "5\tx\ty\n\tx\tz\n0.5\t\tz")
    write(tmp_path / "labelled" / "b.dev.tsv", "1\tx\ty\n")
    a, b = read_sts(tmp_path / "labelled")
    assert (a.group, a.name, a.unscored) == ("labelled", "a", 1)
    assert a.scores.tolist() == [5.0, 0.5]
    assert a.first.to_pylist() == ["x", ""]
    assert (b.group, b.name) == ("labelled", "b.dev")
    assert missing([a, b]) == {}


def test_data_sets_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("A/sts/dev", "B/sts/dev", "B/sts/test", "C/2012/a", "D/2012/b"):
        write(tmp_path / f"{name}.tsv", "5\tx\ty\n")
    names = [(of.group, of.name) for of in read_sts(*(tmp_path / of for of in ("A/sts", "B")))]
    assert names == [("A/sts", "dev"), ("B/sts", "dev"), ("sts", "test")]
    names = [(of.group, of.name) for of in read_sts(tmp_path / "C", tmp_path / "D")]
    assert names == [("STS 2012", "a"), ("STS 2012", "b")]  # as they are
    write(tmp_path / "A/sts/dev.csv", "a\tb\tc\td\t5\tx\ty\n")
    names = [(of.group, of.name) for of in read_sts(tmp_path / "A")]
    assert names == [("sts", "dev.csv"), ("sts", "dev.tsv")]
    twice = [(of.group, of.name) for of in read_sts(tmp_path / "D", tmp_path / "D")]
    assert twice[0] == twice[1]  # `evaluate` says so


JUDGED = [("reference", "paraphrase", "score"), ("a, dog", "a dog", "50"), ("x", "y", "7")]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", "\n".join(map("\t".join, JUDGED)).encode("utf-16")),
        ("a.csv", b'reference,paraphrase,score\n"a, dog",a dog,50\nx,"y",7\n'),
        ("b", bz2.compress(b'reference;paraphrase;score\n"a, dog";a dog;50\nx;"y";7\n')),
        ("a.jsonl", b'\xef\xbb\xbf {"reference": "a, dog", "paraphrase": "a dog", "score": 50}\n\n'
         b'{"score": 7.0, "x": NaN, "reference": "x", "paraphrase": "y"}\n'),
    ],
)  # fmt: skip
def test_judgments_are_read_in_any_form(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    (found,) = read_labelled(tmp_path / name)
    assert (found.first.to_pylist(), found.second.to_pylist()) == (["a, dog", "x"], ["a dog", "y"])
    assert found.scores.tolist() == [50, 7]


def test_judgments_in_parquet(tmp_path: Path) -> None:
    columns = {"reference": pa.array(["x"], pa.string_view()), "score": [0.5], "n": [[1]]}
    table = pa.table({**columns, "translation": pa.array([b"y"])})
    pq.write_table(table, tmp_path / "a")
    (found,) = read_labelled(tmp_path / "a")
    assert (found.first.to_pylist(), found.second.to_pylist()) == (["x"], ["y"])


def test_sts_with_commas_and_compressed(tmp_path: Path) -> None:
    (tmp_path / "2015").mkdir()
    (tmp_path / "2015/a.csv.xz").write_bytes(lzma.compress(b'5,"a, dog",x\n,x,y\n'))
    (tmp_path / "2015/b.tsv.gz").write_bytes(gzip.compress(b"5\ta, dog\tx\n"))
    a, b = read_sts(tmp_path)
    assert [(of.group, of.name, of.unscored) for of in (a, b)] == [
        ("STS 2015", "a", 1), ("STS 2015", "b", 0)
    ]  # fmt: skip
    assert a.first == b.first == pa.array(["a, dog"])


SICK = "sentence_A\tsentence_B\trelatedness_score\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "no STS data sets here"),
        ("a.tsv", "\ta\tb\n", r"a\.tsv: no row with a score"),
        ("a.tsv", "1\ta\tb\n3\tone\n", r"a\.tsv, row 2: 2 columns, expected 3"),
        ("a.tsv", "1\ta\tb\ngood\ta\tb\n", r"a\.tsv, row 2: the score 'good' is not a number"),
        ("a.tsv", "nan\ta\tb\n", r"a\.tsv, row 1: the score nan is not in 0–5"),
        ("SICK_none.txt", "", r"no SICK files here"),
        ("SICK_trial.txt", SICK.replace("sentence_B\t", ""), "row 1: no column sentence_B"),
        ("SICK_trial.txt", f"{SICK}a\tb\t0.5\n", r"row 2: the score 0\.5 is not in 1–5"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    with pytest.raises(UserError, match=message):
        (read_sick if name.startswith("SICK") else read_sts)(tmp_path)
