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

from paraloom.models.embeddings.datasets import lines, sentences
from paraloom.models.embeddings.datasets.sentences import sentence_blocks, sentence_files
from paraloom.models.errors import UserError
from paraloom.pipeline.config.selection import SelectOptions
from tests.run_helpers import Patch, refuses

Rows = list[tuple[int, list[str]]]
DOG, CAT = "A dog runs fast.", "The cat sits there."


def read(path: Path) -> Rows:
    """The rows with sentences, and their numbers."""
    found: dict[int, list[str]] = {}
    for block in sentence_blocks(path):
        for at, texts in block.columns:
            for row, text in zip(block.rows[at].tolist(), texts.to_pylist(), strict=True):
                found.setdefault(row, []).append(text)
    return sorted(found.items())


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        ("a.tsv", f"4.5\t{DOG}\t{CAT}\n\t{CAT}\t{CAT}\n1\t{CAT}\t{DOG}\n", [(1, [DOG, CAT]),
         (2, [CAT, CAT]), (3, [CAT, DOG])]),
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
         [(1, [DOG])]),
        ("b.jsonl", f' {{"n": NaN, "query": "{DOG}", "pos": ["{CAT}", "{DOG} \\ud800"]}}\n',
         [(1, [DOG, CAT, DOG + " ?"])]),
        ("c.jsonl", f'{{"a": [[{{"b": "{DOG}", "n": 1e999}}], []], "c": {{"d": ["{CAT}"]}}}}\n',
         [(1, [DOG, CAT])]),
        ("d.csv", f'id,text\n1,"{DOG}, ""and"" so\non"\n2,{CAT}\n',
         [(1, ["text"]), (2, [f'{DOG}, "and" so\non']), (4, [CAT])]),
        ("e", f'a;b\r\n\r\n{DOG};"{CAT};"\r\n{CAT};""\r\n{CAT};{DOG}\n',
         [(1, ["a", "b"]), (3, [DOG, CAT + ";"]), (4, [CAT]), (5, [CAT, DOG])]),
        ("f.csv", f'"{DOG}"\n{CAT}\n', [(1, [DOG]), (2, [CAT])]),
        ("g.txt", "Well, a dog runs\nSo, a cat sits\n",
         [(1, ["Well, a dog runs"]), (2, ["So, a cat sits"])]),
        ("h.tsv", f"\t{DOG}\n" * 3 + f"{CAT}\t\n", [(1, [DOG]), (2, [DOG]), (3, [DOG]),
         (4, [CAT])]),
    ],
)  # fmt: skip
def test_forms_of_text(tmp_path: Path, name: str, text: str, rows: Rows) -> None:
    path = tmp_path / name
    for pack in (bytes, gzip.compress, bz2.compress, lzma.compress):
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            path.write_bytes(pack(text.encode(encoding)))
            assert read(path) == rows


LISTS = [[DOG, CAT], None, [], [DOG]]
ROWS = [(1, [DOG, CAT]), (4, [DOG])]
INDICES = pa.array([0, 1, 0, None])


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        (pa.array(LISTS), ROWS),
        (pa.array(LISTS, pa.large_list(pa.large_string())), ROWS),
        (pa.array([[DOG, None]] * 4, pa.list_(pa.string(), 2)), [(i, [DOG]) for i in range(1, 5)]),
        (pa.array([LISTS, None, [], []]), [(1, [DOG, CAT, DOG])]),
        (pa.array([[{"en": DOG}], None, [{"en": None}], [{"en": CAT}]]), [(1, [DOG]), (4, [CAT])]),
        (pa.array([{"a": [DOG]}, {"a": [CAT]}, None, {"a": []}]), [(1, [DOG]), (2, [CAT])]),
        (pa.array([[("k", DOG)], None, [], [("k", CAT), ("l", DOG)]],
                  pa.map_(pa.string(), pa.string())), [(1, [DOG]), (4, [CAT, DOG])]),
        (pa.array([DOG, CAT, None, ""], pa.string_view()), [(1, [DOG]), (2, [CAT])]),
        (pa.array([DOG.encode(), None, b"\xff " + CAT.encode(), b""]),
         [(1, [DOG]), (3, ["\ufffd " + CAT])]),
        (pa.array([DOG.encode()] * 4, pa.binary(len(DOG))), [(i, [DOG]) for i in range(1, 5)]),
        (pa.DictionaryArray.from_arrays(INDICES, pa.array([DOG, CAT], pa.large_string())),
         [(1, [DOG]), (2, [CAT]), (3, [DOG])]),
        (pa.DictionaryArray.from_arrays(INDICES, [DOG.encode(), CAT.encode()]),
         [(1, [DOG]), (2, [CAT]), (3, [DOG])]),
    ],
    ids=lambda of: str(of.type) if isinstance(of, pa.Array) else "",
)  # fmt: skip
def test_parquet_beside_a_column_of_text(tmp_path: Path, column: pa.Array, rows: Rows) -> None:
    """What is in lists, structures, maps, bytes is read as what is in a column of text."""
    further = {"image": [b"a \0 b c"] * 4, "vector": [[0.5]] * 4, "n": range(4)}
    pq.write_table(pa.table({"text": [CAT] * 4, "of": column, **further}), tmp_path / "a")
    found = dict(rows)
    assert read(tmp_path / "a") == [(row, [CAT, *found.get(row, [])]) for row in range(1, 5)]


def test_a_column_may_begin_late(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sentences, "_ROWS", 2)
    pq.write_table(pa.table({"a": [DOG] * 5, "b": [None] * 4 + [CAT]}), tmp_path / "a")
    records = [f'{{"a": "{DOG}"}}\n'] * 4 + [f'{{"a": "{DOG}", "b": "{CAT}"}}\n']
    (tmp_path / "b").write_text("".join(records))
    (tmp_path / "c").write_text(f"{DOG}\n" * 4 + f"{DOG}\t{CAT}\n")
    expected = [*((row, [DOG]) for row in range(1, 5)), (5, [DOG, CAT])]
    assert [read(tmp_path / name) for name in "abc"] == [expected] * 3


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_lines_are_read_in_blocks(tmp_path: Path, monkeypatch: Patch, chunk: int) -> None:
    """Whatever the blocks, with lines of different length, and with the row of a damaged one."""
    monkeypatch.setattr(lines, "CHUNK", chunk)
    text = f"{DOG}\t{CAT}\r\n\n\t\t{CAT}\n{DOG}\r \n{DOG}\t{CAT}\t{DOG}\t{CAT}"
    (tmp_path / "a").write_bytes(text.encode())
    rows = [[DOG, CAT], [""], ["", "", CAT], [f"{DOG}\r "], [DOG, CAT, DOG, CAT]]
    assert list(lines.rows_of(tmp_path / "a")) == [*enumerate(rows, 1)]
    found = [(number, [*filter(None, row)]) for number, row in enumerate(rows, 1)]
    assert read(tmp_path / "a") == [of for of in found if of[1]]

    monkeypatch.setattr(lines, "LONGEST", 90)
    for row, said in [(b"\xff", "not UTF-8"), (b"\0", "has NUL"), (b"x" * 89, "longer than 90")]:
        (tmp_path / "b").write_bytes(f"{CAT}\n".encode() * 9 + row + b"\n" + f"{DOG}\n".encode())
        with pytest.raises(UserError, match=rf"b, row 10: {said}"):
            list(lines.rows_of(tmp_path / "b"))


def test_lines_of_latin_1_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.neg").write_bytes("un café très noir\nça va très bien\n".encode("latin-1"))
    assert read(tmp_path / "a.neg")[0] == (1, ["un café très noir"])


def test_files_of_a_folder_have_names_from_it_on(tmp_path: Path) -> None:
    pairs = ("2012/MSRpar.tsv", "2012/MSRpar.train.tsv", "data/test-0.parquet", "rt.all")
    for name in (*pairs, "b.txt.gz", "README.md", ".cache/a", "_rejected/a", "dataset_infos.json"):
        (tmp_path / "sts" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sts" / name).touch()
    (tmp_path / "sts/infos.json").write_text('{"a": 1}')
    (tmp_path / "sts/pretty.json").write_text('{\n"a": 1\n}')
    for name in ("lines.json", "array.json"):
        (tmp_path / "sts" / name).write_text('{"a": 1}\n{"a": 2}' if name < "b" else '[\n{"a": 1}]')
    expected = ["2012/MSRpar.train", "2012/MSRpar", "array.json", "b", "data/test-0"]
    expected += ["lines.json", "rt.all"]
    assert list(sentence_files(tmp_path / "sts")) == [f"sts/{name}" for name in expected]
    assert sentence_files(tmp_path / "sts/2012/MSRpar.tsv").keys() == {"MSRpar"}
    (tmp_path / "link.csv").symlink_to(tmp_path / "sts/rt.all")
    assert sentence_files(tmp_path / "link.csv") == {"link": tmp_path / "link.csv"}
    assert sentence_files(tmp_path / "sts/README.md").keys() == {"README.md"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no files with sentences here"):
        sentence_files(tmp_path / "empty")


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["one/test.tsv", "two/test.tsv"], ["one/test", "two/test"]),
        (["one/test.tsv", "a/other.tsv", "two/test.tsv"], ["one/test", "other", "two/test"]),
        (["a/sts", "b/sts"], ["a/sts/dev", "b/sts/dev"]),
        (["both"], ["both/dev.tsv", "both/dev.txt"]),
        (["both/dev.tsv", "both/dev.txt", "a/sts/dev.tsv"],
         ["both/dev", "dev.txt", "sts/dev"]),
        (["one/test.tsv", "one/test.tsv", "one"], ["test", "one/test"]),
    ],
)  # fmt: skip
def test_files_of_one_name_have_names_that_tell_them_apart(
    tmp_path: Path, paths: list[str], names: list[str]
) -> None:
    made = ["one/test.tsv", "two/test.tsv", "a/sts/dev.tsv", "b/sts/dev.tsv", "a/other.tsv"]
    for name in [*made, "both/dev.tsv", "both/dev.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [*sentence_files(*(tmp_path / path for path in paths))] == names


def test_a_data_set_of_the_hub_has_its_parquet_files(tmp_path: Path, monkeypatch: Patch) -> None:
    def fetch(name: str, choose: Callable[[list[str], Path], list[str]], *_: object) -> Any:
        assert name == "owner/sts@v1"
        return tmp_path, choose(["README.md", "data/test-0.parquet", "cs/dev.parquet"], tmp_path)

    monkeypatch.setattr(sentences, "fetch_dataset", fetch)
    names = ("data/test-0", "cs/dev")
    files = {f"owner/sts/{name}": tmp_path / f"{name}.parquet" for name in names}
    assert sentence_files("owner/sts@v1") == files
    options = SelectOptions(exclude=["owner/sts@v1"], by="content_overlap")
    assert options.files(lambda mark: mark.hub) == {"exclude[0]": "owner/sts@v1"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no rows, the file is empty"),
        (b"one\ntwo words\n", "no column has sentences"),
        (b"PAR1 and no more", "cannot be read"),
        ("A dog runs fast.\n".encode("utf-16-le"), "row 1: has NUL bytes; if the file is UTF-16"),
        (b'[{"a": "one two three"}]', "is a JSON array; convert it to JSON Lines"),
        (b'{\n "a": "one two three"\n}', "row 1: not a JSON object"),
        (
            b"a,b\n" + b"1,2\n" * 99 + b"a dog, a cat, or\n",
            "row 101: 3 columns instead of 2; quote",
        ),
        (b"a,b\n" + b"1,2\n" * 99 + b'"a dog,\n', r"row 101: no CSV \(unexpected end of data\)"),
        (b'{"a": "one two three"}\n{"a": \n', "row 2: not a JSON object; each line must be one"),
    ],
)
def test_no_file_of_sentences_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with refuses(f"file(:|,) {message}"):
        read(tmp_path / "file")
