"""Sentences of files in every form: which columns they are in, and the numbers of their rows."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.embeddings.datasets import sentences
from paraloom.models.embeddings.datasets.sentences import sentence_blocks, sentence_files
from paraloom.models.errors import UserError
from paraloom.pipeline.config.selection import SelectOptions
from tests.run_helpers import Patch

Pack = Callable[[bytes], bytes]
PACKERS: list[Pack] = [bytes, gzip.compress, bz2.compress, lzma.compress]
DOG, CAT = "A dog runs fast.", "The cat sits there."


def read(path: Path) -> list[tuple[int, list[str | None]]]:
    """The rows with their numbers."""
    return [
        (first + i, list(row.values()))
        for first, block in sentence_blocks(path)
        for i, row in enumerate(block.to_pylist())
    ]


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("a.tsv", f"4.5\t{DOG}\t{CAT}\n\t{CAT}\t{CAT}\n1\t{CAT}\t{DOG}\n", [(1, [DOG, CAT]),
         (2, [None, None]), (3, [CAT, DOG])]),
        ("SICK.txt", f"pair_ID\tsentence_A\tlabel\n1\t{DOG}\tNEUTRAL\n2\t{CAT}\tNEUTRAL\n",
         [(1, ["sentence_A"]), (2, [DOG]), (3, [CAT])]),
        ("sts.csv", f"main\t1\t{DOG}\t{CAT}\thttp://a.b/c-d-e\nmain\t2\t{CAT}\t{DOG}\n",
         [(1, [DOG, CAT]), (2, [CAT, DOG])]),
        ("lines", f"{DOG}\r\n{CAT}\r\n", [(1, [DOG]), (2, [CAT])]),
        ("rt.all", f"0 {DOG}\n1 {CAT}\n", [(1, [DOG]), (2, [CAT])]),
        ("TREC", f"DESC:manner {DOG}\nENTY:cremat {CAT}\n", [(1, [DOG]), (2, [CAT])]),
        ("zh.txt", "猫在这里坐着。\n", [(1, ["猫在这里坐着。"])]),
        ("a.jsonl", "".join(json.dumps(row) + "\n" for row in (
            {"id": "x", "translation": {"cs": "ano", "en": DOG}, "score": 1},
            {"id": "y", "translation": {"cs": "ne", "en": None}, "score": 2})),
         [(1, [DOG]), (2, [None])]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pack", PACKERS)
def test_forms_of_text(
    tmp_path: Path, name: str, text: str, rows: list[tuple[int, list[str]]], pack: Pack
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(text.encode()))
    assert read(path) == rows


def test_parquet_has_columns_of_any_text(tmp_path: Path) -> None:
    columns = {
        "label": ["yes", "no"],
        "first": pa.array([DOG, CAT], pa.large_string()),
        "second": pa.array([CAT, None]).dictionary_encode(),
        "pair": pa.array([{"en": DOG, "n": 1}, {"en": CAT, "n": 2}]),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [(1, [DOG, CAT, DOG]), (2, [CAT, None, CAT])]


def test_rows_are_counted_across_blocks(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sentences, "_ROWS", 2)
    texts = [f"this is sentence {i}" for i in range(5)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    (tmp_path / "a.txt").write_text("\n".join(texts))
    expected = [(i, [text]) for i, text in enumerate(texts, 1)]
    assert read(tmp_path / "a.parquet") == read(tmp_path / "a.txt") == expected


def test_lines_of_latin_1_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.neg").write_bytes("un café très noir\nça va très bien\n".encode("latin-1"))
    assert read(tmp_path / "a.neg")[0] == (1, ["un café très noir"])


def test_files_of_a_folder_have_names_from_it_on(tmp_path: Path) -> None:
    pairs = ("2012/MSRpar.tsv", "2012/MSRpar.train.tsv", "data/test-0.parquet", "rt.all")
    for name in (*pairs, "b.txt.gz", "README.md", ".cache/a.tsv", "dataset_infos.json"):
        (tmp_path / "sts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sts" / name).touch()
    expected = ["2012/MSRpar.train", "2012/MSRpar", "b", "data/test-0", "rt.all"]
    assert list(sentence_files(tmp_path / "sts")) == [f"sts/{name}" for name in expected]
    assert sentence_files(tmp_path / "sts/2012/MSRpar.tsv").keys() == {"MSRpar"}
    assert sentence_files(tmp_path / "sts/README.md").keys() == {"README.md"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no file of sentences here"):
        sentence_files(tmp_path / "empty")


def test_a_data_set_of_the_hub_has_its_parquet_files(tmp_path: Path, monkeypatch: Patch) -> None:
    def fetch(name: str, choose: Callable[[list[str]], list[str]], *_: object) -> Any:
        assert name == "owner/sts@v1"
        return tmp_path, choose(["README.md", "data/test-0.parquet", "cs/dev.parquet"])

    monkeypatch.setattr(sentences, "fetch_dataset", fetch)
    files = {
        f"owner/sts/{name}": tmp_path / f"{name}.parquet" for name in ("data/test-0", "cs/dev")
    }
    assert sentence_files("owner/sts@v1") == files
    options = SelectOptions(exclude=["owner/sts@v1"], by="content_overlap")
    assert options.files(lambda mark: mark.hub) == {"exclude[0]": "owner/sts@v1"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows, the file is empty"),
        (b"one\ntwo words\n", "no column of sentences"),
        (b"PAR1 and no more", "cannot be read"),
        (b'{"a": "one two three"}\n{"a": \n', "cannot be read"),
        (gzip.compress(b"a dog runs fast\n" * 99, mtime=0)[:-9], "truncated or corrupt gzip"),
    ],
)
def test_what_is_no_file_of_sentences_is_one_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=f"file: {message}") as error:
        read(tmp_path / "file")
    assert "\n" not in str(error.value)
