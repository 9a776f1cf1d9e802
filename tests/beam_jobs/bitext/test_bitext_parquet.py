"""Parquet's types; subsets and splits of data sets of the Hub, as its library has them."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.bitext import Layout, find_bitext
from paraloom.beam_jobs.bitext.hub import by_split
from paraloom.models.errors import UserError
from paraloom.models.structured import front_matter
from tests.beam_jobs.bitext.test_bitext import made_id
from tests.beam_jobs.bitext.test_bitext_records import pairs, read, rejects
from tests.run_helpers import Patch

TABLE = pa.table({"source": ["a"], "reference": ["b"]})
SPARK = "part-0000{}-0e6f4a3c-c000.snappy.parquet"


def made(folder: Path, names: list[str], configs: str = "") -> Path:
    """A folder with files and, with `configs`, a card."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(TABLE, folder / name)
    if configs:
        (folder / "README.md").write_text(f"---\nlicense: mit\nconfigs:\n{configs}\n---\n# Card\n")
    return folder


TEXTS = ["a" * 30, "č", "c", None]


def read_tables(folder: Path, *tables: pa.Table, **layout: Any) -> tuple[list[Any], list[str]]:
    """The pairs of some files, and the reasons of rejected rows."""
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    paths = [str(folder / f"{number}.parquet") for number in range(len(tables))]
    blocks = [b for of in find_bitext("parquet", paths, Layout(**layout)) for b in read(of, 3)]
    return pairs(blocks), [why for *_, why in rejects(blocks)]


@pytest.mark.parametrize(
    "text",
    [
        pa.array(TEXTS), pa.array(TEXTS, pa.large_string()), pa.array(TEXTS, pa.string_view()),
        pa.array(TEXTS).dictionary_encode(), pa.array(TEXTS, pa.large_string()).dictionary_encode(),
        pa.array(TEXTS, pa.binary()), pa.array(TEXTS, pa.large_binary()),
        pa.array(TEXTS, pa.binary_view()), pa.array(TEXTS, pa.binary()).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_types_that_hold_text(tmp_path: Path, text: pa.Array) -> None:
    table = pa.table({"kept": text, "s": pa.StructArray.from_arrays([text], ["x"])})
    table = table.append_column("reference", text)
    layout = {"columns": {"source": "s.x", "id": "kept"}, "keep": ("kept",)}
    found, why = read_tables(tmp_path, table, **layout)
    names = ("id", "source", "reference", "kept")
    assert found == [dict.fromkeys(names, of) for of in TEXTS[:3]]
    assert why == ["no id"]


WRONG = pa.array([b"ab", b"c\xff"])
BINARY = [WRONG.cast(of) for of in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))]
BINARY.append(pa.Array.from_buffers(pa.string(), 2, WRONG.buffers()))  # which does not look


@pytest.mark.parametrize("texts", BINARY, ids=lambda array: str(array.type))
@pytest.mark.parametrize("name", ["source", "reference", "kept"])
def test_binary_that_is_no_text(tmp_path: Path, texts: pa.Array, name: str) -> None:
    table = pa.table({of: ["ab", "cd"] for of in ("source", "reference", "kept")})
    table = table.set_column(table.column_names.index(name), name, texts)
    found, why = read_tables(tmp_path, table, keep=("kept",))
    assert found == [{"id": made_id("ab", "ab"), "source": "ab", "reference": "ab", "kept": "ab"}]
    assert why == [f"invalid UTF-8 in {name}"]


def test_numbers_as_ids_and_a_name_with_a_dot(tmp_path: Path) -> None:
    texts = {"source": ["á", "b"], "reference": ["c", "d"]}
    table = pa.table({"id": [2**60, 2], **texts, "a.b": pa.array([1, None], pa.int8())})
    found, _ = read_tables(tmp_path, table, columns={"id": "id"}, keep=("a.b",))
    assert found == [
        {"id": str(2**60), "source": "á", "reference": "c", "a.b": 1},
        {"id": "2", "source": "b", "reference": "d", "a.b": None},
    ]


UINT = pa.array([1, 2**63, 2**53 + 1, 2**62], pa.uint64())
INT = pa.array([1, -(2**63), 2**53 + 1, 2**62])
HALF = pa.array(np.array([1, 0.5, 65504, 2], np.float16))
BOOL = pa.array([True, False, None, True])
DOUBLE = pa.array([0.5] * 4)


@pytest.mark.parametrize(
    ("column", "other", "expected"),
    [
        (UINT, None, [1, "int64", 2**53 + 1, 2**62]),
        (UINT, INT, [1, "int64", 2**53 + 1, 2**62, 1, -(2**63), 2**53 + 1, 2**62]),
        (UINT, DOUBLE, [1.0, 2.0**63, "double", 2.0**62] + [0.5] * 4),
        (INT, None, [1, -(2**63), 2**53 + 1, 2**62]),
        (INT, DOUBLE, [1.0, -(2.0**63), "double", 2.0**62] + [0.5] * 4),
        (INT, HALF, [1.0, -(2.0**63), "double", 2.0**62, 1.0, 0.5, 65504.0, 2.0]),
        (INT.dictionary_encode(), DOUBLE, [1.0, -(2.0**63), "double", 2.0**62] + [0.5] * 4),
        (pa.array([1, 2, None, 4], pa.int8()), DOUBLE, [1.0, 2.0, None, 4.0] + [0.5] * 4),
        (pa.array([0.1] * 4, pa.float32()), None, [float(np.float32(0.1))] * 4),
        (BOOL, pa.nulls(4), [True, False, None, True] + [None] * 4),
    ],
)  # fmt: skip
def test_no_number_changes(
    tmp_path: Path, column: pa.Array, other: pa.Array | None, expected: list[Any]
) -> None:
    names = [str(n) for n in range(4)]
    tables = [pa.table({"source": names, "reference": names, "n": column})]
    if other is not None:  # in another order, with one column more
        tables.append(pa.table({"n": other, "more": names, "reference": names, "source": names}))
    found, why = read_tables(tmp_path, *tables, keep=("n",))
    wanted = [(value, type(value)) for value in expected if not isinstance(value, str)]
    assert [(row["n"], type(row["n"])) for row in found] == wanted
    assert why == [f"n is not of type {kind}" for kind in expected if isinstance(kind, str)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([Decimal("1.5")]), pa.array([0], pa.date32()), pa.array([0], pa.timestamp("us")),
        pa.array([0], pa.time64("us")), pa.array([["a"]]),
        pa.array([["a"]], pa.large_list(pa.string())), pa.array([["a"]], pa.list_(pa.string(), 1)),
        pa.array([[("a", "b")]], pa.map_("string", "string")),
    ],
    ids=lambda array: str(array.type),
)  # fmt: skip
def test_types_that_no_column_has(tmp_path: Path, values: pa.Array) -> None:
    texts = {"source": ["a"], "reference": ["b"]}
    with pytest.raises(UserError, match=r"n has values of type .*; convert them to text or n"):
        read_tables(tmp_path, pa.table({**texts, "n": values}), keep=("n",))
    for name, of in (("source", values), ("reference", UINT[:1]), ("source", BOOL[:1])):
        with pytest.raises(UserError, match=f"0.parquet: {name} has values of type"):
            read_tables(tmp_path, pa.table({**texts, name: of}))


def found(folder: Path, **layout: Any) -> list[str]:
    bitexts = find_bitext("hub", [str(folder)], Layout(**layout))
    return [Path(of.paths[0]).relative_to(folder).as_posix() for of in bitexts]


RELEASE = """- config_name: full
  default: true
  data_files:
  - {split: train, path: data/train-*}
  - {split: test, path: data/test-*}
- config_name: pairs
  data_files:
  - {split: train, path: pairs/train-*}"""
SHAPES: dict[str, tuple[list[str], str]] = {
    "shards": (["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet",
                "data/test-00000-of-00001-0a1b2c.parquet", "more/train.parquet"], ""),
    "own splits": (["data/books-00000-of-00001.parquet", "data/a.b-00000-of-00001.parquet"], ""),
    "Spark": ([SPARK.format(0), SPARK.format(1)], ""),
    "Spark by split": ([f"train/{SPARK.format(0)}", f"val/{SPARK.format(0)}"], ""),
    "partitions": ([f"year=2020/{SPARK.format(0)}", f"year=2021/{SPARK.format(0)}"], ""),
    "numbered": (["train_0.parquet", "train_1.parquet", "dev.parquet", "my-eval-2.parquet"], ""),
    "one number": (["0000.parquet", "0001.parquet"], ""),
    "converted": (["default/partial-train/0000.parquet", "default/test/0000.parquet"], ""),
    "no word": (["trainer.parquet", "Train.parquet", "contest.parquet"], ""),
    "folders first": (["training/test_1.parquet", "training/deep/er/2.parquet"], ""),
    "two words": (["train_test.parquet", "x.parquet"], ""),
    "hidden": (["train.parquet", ".cache/train.parquet", "__x/test.parquet", "__y.parquet"], ""),
    "release": (["data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet",
                 "pairs/train-00000-of-00001.parquet"], RELEASE),
    "default elsewhere": (["data/train-00000-of-00001.parquet", "clean/train.parquet"],
                          "- {config_name: default, data_files: clean/*}"),
    "a run": (["corpus/part-00000-00000.parquet", "ingest/part-00000-00000.parquet"],
              "- config_name: default\n  data_files:\n"
              "  - {split: train, path: corpus/part-*.parquet}"),
    "lists": (["a/1.parquet", "b/2.parquet", "c/3.parquet", "c/d/4.parquet"],
              "- {config_name: x, data_files: [b/*, a/1.parquet]}\n- config_name: y\n"
              "  data_files:\n  - {split: test, path: [c/**, 'b/?.parquet']}\n"
              "  - {split: dev_1, path: '**/[!1-3].parquet'}"),
    "data_dir": (["v1/train-0.parquet", "v1/test/0.parquet", "v2/data/x-00000-of-00001.parquet",
                  "v2/train.parquet", "v3/a.parquet", "v3/b.parquet"],
                 "- {config_name: one, data_dir: v1}\n- {config_name: two, data_dir: ./v2/}\n"
                 "- {config_name: three, data_dir: v3, data_files: b.parquet}"),
    "hidden by glob": (["a/.b/1.parquet", "a/2.parquet", ".c/3.parquet", "__d/4.parquet"],
                       "- {config_name: all, data_files: '**'}\n"
                       "- {config_name: c, data_files: .c/*}\n"
                       "- {config_name: d, data_files: ['__d/*', '*/.b/*']}"),
    "no files named": (["train.parquet", "test.parquet"],
                       "- {config_name: one, default: true}\n- {config_name: two}"),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_subsets_and_splits_are_as_datasets(tmp_path: Path, monkeypatch: Patch, shape: str) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    datasets = pytest.importorskip("datasets")
    folder = made(tmp_path / "set", *SHAPES[shape])
    card = folder / "README.md"
    ours = by_split(
        [path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")],
        front_matter(card) if card.exists() else None,
    )

    def theirs(*name: str) -> dict[str, list[str]]:
        try:
            built = datasets.load_dataset_builder(str(folder), *name, cache_dir=str(tmp_path))
        except ValueError as error:
            assert "Config name is missing" in str(error)
            return {}
        files = built.config.data_files.items()
        assert all(len(of) == len({*of}) for _, of in files)
        names = {split: [Path(f).relative_to(folder).as_posix() for f in of] for split, of in files}
        return {str(split): sorted(of) for split, of in names.items()}

    def of_subset(subset: str) -> dict[str, list[str]]:
        return {split: sorted(of) for split, of in ours[subset].items()}

    assert of_subset("") == theirs()
    if card.exists():
        names = datasets.get_dataset_config_names(str(folder))
        assert {*ours} == {"", *names}
        for name in names:
            assert of_subset(name) == theirs(name)


FILES = [
    "data/train-00000-of-00002.parquet",
    "data/train-00001-of-00002.parquet",
    "data/test-00000-of-00001-0a1b2c.parquet",
    "cs-en/validation/0000.parquet",
    "de-en/validation-00000-of-00001.parquet",
    "README.md",
]


def test_without_a_card_folders_are_subsets(tmp_path: Path) -> None:
    made(tmp_path, FILES)
    assert found(tmp_path) == FILES[:2]
    assert found(tmp_path, split="test") == FILES[2:3]
    assert found(tmp_path, split="validation", subset="de-en") == FILES[4:5]
    names = "null test, null train, cs-en validation, de-en validation"
    for layout in ({"split": "validation"}, {"subset": "fr-en"}, {"split": "dev"}):
        with pytest.raises(UserError, match=f"input.split must name one of {names}"):
            found(tmp_path, **layout)
    with pytest.raises(UserError, match="is neither a folder nor the name of a data set"):
        find_bitext("hub", [str(tmp_path / "nothing")])


def test_files_of_several_subsets_are_not_joined(tmp_path: Path) -> None:
    names = ["cs-en/part-0.parquet", "de-en/part-0.parquet", "cs-en/year=2020/part-0.parquet"]
    made(tmp_path, names)
    with pytest.raises(UserError, match="must name one of cs-en train, de-en train"):
        found(tmp_path)
    assert found(tmp_path, subset="cs-en") == [names[0], names[2]]


def test_splits_that_the_hub_converted_keep_their_names() -> None:
    names = ["a/partial-train_sft/0000.parquet", "a/train_gen-part1/0000.parquet"]
    other = "b/train_sft/0000.parquet"
    splits = {"train_sft": names[:1], "train_gen": names[1:]}
    assert by_split([*names, other]) == {"": {}, "a": splits, "b": {"train_sft": [other]}}
    assert by_split(names) == {"": splits, "a": splits}


def test_a_release_is_named_by_its_configurations(tmp_path: Path) -> None:
    files, configs = SHAPES["release"]
    made(tmp_path, files, configs)
    assert found(tmp_path) == found(tmp_path, subset="full") == files[:1]
    assert found(tmp_path, subset="full", split="test") == files[1:2]
    assert found(tmp_path, subset="pairs") == files[2:]
    with pytest.raises(UserError, match="one of null test, null train, full test, full train, pai"):
        found(tmp_path, subset="data")


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ("- {config_name: a, data_files: b.parquet}", "b.parquet: README.md names this file"),
        ("- {config_name: a, data_files: 3}", r"set: the metadata `configs` in README.md are not"),
        ("- {data_files: a.parquet}", r"are not in the Hub's form \(KeyError: 'config_name'"),
        ("  full: a.parquet", "are not in the Hub's form"),
        ("- config_name: [", r"README.md: line \d: "),
        ("- {config_name: a, data_files: '*.csv'}", "has no files that Paraloom can read"),
        ("- {config_name: a, data_files: ../set/a.parquet}", "names this file, but"),
    ],
)
def test_a_card_that_cannot_be_followed(tmp_path: Path, configs: str, message: str) -> None:
    folder = made(tmp_path / "set", ["a.parquet"], configs)
    with pytest.raises(UserError, match=message) as error:
        found(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("card", ["", "# No metadata", "---\nlicense: mit\n---\n", "---\n\n---\n"])
def test_a_card_without_configurations(tmp_path: Path, card: str) -> None:
    made(tmp_path, ["test.parquet", "train.parquet"])
    (tmp_path / "README.md").write_text(card)
    assert found(tmp_path) == ["train.parquet"]
