"""Subsets and splits of data sets of the Hub are those of its library `datasets`."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.io.bitext import Layout, find_bitext
from paraloom.beam_jobs.io.bitext.hub import by_split
from paraloom.models.errors import UserError
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
    "Spark in data": ([f"data/{SPARK.format(0)}", f"data/{SPARK.format(1)}"], ""),
    "Spark by split": ([f"train/{SPARK.format(0)}", f"val/{SPARK.format(0)}"], ""),
    "partitions": ([f"year=2020/{SPARK.format(0)}", f"year=2021/{SPARK.format(0)}"], ""),
    "numbered": (["train_0.parquet", "train_1.parquet", "dev.parquet", "my-eval-2.parquet"], ""),
    "hashes": (["train-00000-of-00002-0a1b2c3d4e5f6071.parquet",
                "train-00001-of-00002-0a1b2c3d4e5f6071.parquet"], ""),
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
def test_subsets_and_splits_are_those_of_datasets(
    tmp_path: Path, monkeypatch: Patch, shape: str
) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    datasets = pytest.importorskip("datasets")
    folder = made(tmp_path / "set", *SHAPES[shape])
    card = folder / "README.md"
    ours = by_split(
        [path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")],
        card.read_text() if card.exists() else "",
    )

    def theirs(*name: str) -> dict[str, list[str]]:
        try:
            built = datasets.load_dataset_builder(str(folder), *name, cache_dir=str(tmp_path))
        except ValueError as error:
            assert "Config name is missing" in str(error)
            return {}
        files = built.config.data_files.items()
        assert all(len(of) == len({*of}) for _, of in files)
        return {
            str(split): sorted(Path(f).relative_to(folder).as_posix() for f in of)
            for split, of in files
        }

    def of_subset(subset: str) -> dict[str, list[str]]:
        return {split: sorted(of) for (name, split), of in ours.items() if name == subset}

    assert of_subset("") == theirs()
    if card.exists():
        names = datasets.get_dataset_config_names(str(folder))
        assert {name for name, _ in ours} - {""} == {*names}
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
    splits = {("a", "train_sft"): names[:1], ("a", "train_gen"): names[1:]}
    assert by_split([*names, other]) == {**splits, ("b", "train_sft"): [other]}
    assert by_split(names) == {**{("", of): files for (_, of), files in splits.items()}, **splits}


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
        ("- {config_name: a, data_files: '*.csv'}", "must name one of none"),
        ("- {config_name: a, data_files: ../set/a.parquet}", "this file of the data set"),
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
