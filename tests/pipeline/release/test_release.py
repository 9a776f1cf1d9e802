"""`paraloom publish`: the folder that it makes, its files, what it refuses, and what it sends."""

import json
import shutil
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.beam_jobs import storage
from paraloom.models.files import digest
from paraloom.pipeline.cli import main
from paraloom.pipeline.pages.metadata import SplitFiles
from paraloom.pipeline.release import files
from paraloom.pipeline.release.files import PAIRS, SplitWriter, held_out, write_configurations
from paraloom.pipeline.release.release import files_of
from tests.run_helpers import Capsys, Patch, changed_record, one_line, part_file


def publish(run: Path | str, *options: str) -> int:
    return main(["publish", str(run), "--held-out", "0.1", *options])


def card(run: Path) -> str:
    return (run / "release" / "README.md").read_text("utf-8")


def metadata(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(card(run).split("---\n")[1])
    return found


def test_datasets_opens_splits_and_configurations(
    run: Path, corpus: list[dict[str, Any]], tmp_path: Path, datasets: Any, card_names: Any,
    capsys: Capsys,
) -> None:  # fmt: skip
    assert publish(run) == 0
    printed = capsys.readouterr().out
    for name in files_of(run / "release"):
        assert f"{(run / 'release' / name).stat().st_size:,}  {name}\n" in printed
    assert "nothing was uploaded" in printed

    def load(*name: str) -> Any:
        return datasets.load_dataset(str(run / "release"), *name, cache_dir=str(tmp_path / "cache"))

    full, pairs = load(), load("pairs")
    assert set(full) == set(pairs) == {"train", "test"}
    ids = [row["id"] for split in full.values() for row in split]
    assert Counter(ids) == Counter(row["id"] for row in corpus)
    rows = {row["id"]: row for row in corpus}
    assert all(rows[row["id"]] == row for split in full.values() for row in split)
    references = [{plain(text) for text in of["reference"]} for of in full.values()]
    assert references[0].isdisjoint(references[1])
    for name, split in full.items():
        assert pairs[name].column_names == ["anchor", "positive"]
        assert [*pairs[name]["anchor"]] == [*split["reference"]]
        assert [*pairs[name]["positive"]] == [*split["translation"]]
    assert datasets.get_dataset_config_names(str(run / "release")) == ["full", "pairs"]
    found = card_names(run / "release/README.md")["pairs"]
    lists = ({name: of.to_list() for name, of in these.items()} for these in (found, pairs))
    assert next(lists) == next(lists)


def test_the_card_is_complete_without_paths_and_secrets(run: Path) -> None:
    with changed_record(run) as record:
        record["config"] |= {"seed": 3}
        record["config"]["nmt"]["model"] = "/data/models/cs-en"
        record["config"]["input"]["paths"] = ["s3://key:word@host/bucket/a.gz"]
        record["stages"]["ingest"]["inputs"][0]["path"] = "s3://key:word@host/bucket/a.gz"

    assert publish(run, "--repo", "me/captions") == 0
    head, text = metadata(run), card(run)
    expected = {
        "license": "cc-by-4.0",
        "language": ["en", "cs"],
        "multilinguality": ["translation"],
        "language_creators": ["found", "machine-generated"],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["extended"],
        "task_ids": ["semantic-similarity-scoring"],
    }
    assert {key: head[key] for key in expected} == expected
    assert [of.get("default", False) for of in head["configs"]] == [True, False]
    rows = pq.read_table(run / "release/data/train-00000-of-00001.parquet")
    size = (run / "release/data/train-00000-of-00001.parquet").stat().st_size
    assert f" | `train` | {rows.num_rows:,} | 1 | {size:,} |" in text
    assert "the reference with the seed 3 decides" in text
    assert 'load_dataset("me/captions", "pairs")' in text
    assert "Licence: CC BY 4.0.\n" in text
    assert "| `pairs` | anchor, positive | `test` |" in text
    assert "part-*.parquet" not in text and "corpus.tsv.gz" not in text
    provenance = (run / "release/provenance/release.json").read_text()
    configuration = json.loads(provenance)["configuration"]
    assert configuration["run"] == "captions" and configuration["nmt"]["beam"]
    for trace in (str(run.parent), "/data/", "hf_abc", "hub_token", "key:word"):
        assert trace not in text + provenance


def test_the_same_again_has_the_same_bytes(run: Path, corpus: list[Any]) -> None:
    assert publish(run) == 0
    sums = (run / "release" / "SHA256SUMS").read_text()
    for line in sums.splitlines():
        sum_, name = line.split("  ")
        assert digest(run / "release" / name) == sum_
    assert len(sums.splitlines()) == len(files_of(run / "release")) - 1
    assert publish(run, "--held-out", "40") == 0
    assert (run / "release" / "SHA256SUMS").read_text() != sums
    rows = pq.read_table(run / "release/data/test-00000-of-00001.parquet").num_rows
    assert 20 <= rows <= 60
    assert publish(run, "--held-out", "0") == 0
    names = [path.name for path in (run / "release").glob("*/*.parquet")]
    assert names == ["train-00000-of-00001.parquet"] * 2
    assert pq.read_table(run / "release" / "data").num_rows == len(corpus)
    assert "A hash of" not in card(run)
    assert publish(run) == 0
    assert (run / "release" / "SHA256SUMS").read_text() == sums
    assert not [*run.glob(".release*")]


def test_it_overwrites_releases_only(run: Path, capsys: Capsys) -> None:
    assert publish(run, "--out", str(run)) == 2
    assert "exists and is not a release" in one_line(capsys)
    assert publish(run) == 0
    (run / "release" / "data" / "of-another-release.parquet").touch()
    assert publish(run) == 0
    assert not (run / "release" / "data" / "of-another-release.parquet").exists()


def test_what_killed_commands_left(run: Path, capsys: Capsys) -> None:
    for name in (".release.abcdef01", ".release.0123456f"):
        (run / name / "release" / "data").mkdir(parents=True)
    (run / ".release.triplets").mkdir()
    assert publish(run) == 0
    assert [path.name for path in run.glob(".release*")] == [".release.triplets"]
    said = f"{run / '.release.triplets'}: left by an interrupted `publish --triplets`; "
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize("harm", ["damaged", "missing", "empty", "none"])
def test_a_damaged_corpus(run: Path, harm: str, capsys: Capsys) -> None:
    path = part_file(run / "corpus", "part-1")
    if harm == "damaged":
        path.write_bytes(path.read_bytes()[:-1])
    elif harm == "missing":
        path.unlink()
    elif harm == "empty":
        shutil.rmtree(run / "corpus" / "_receipts")
    else:
        with changed_record(run) as record:
            record["stages"].pop("select")
    assert publish(run) == 2
    assert {"damaged": "damaged, its checksum", "missing": f"{path.name}: cannot be read",
            "empty": "its corpus is empty", "none": "no run with a corpus here",
            }[harm] in one_line(capsys)  # fmt: skip
    assert not (run / "release").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--license", "?"], "input.license is not set"),
        (["--license", "CC BY-SA 2.0"], "'CC BY-SA 2.0' is not on the Hub's list"),
        (["--license", "mine", "--license-link", "none"], "--license-link none: is neither a file"),
        (["--license", "mit", "--license-link", "none"], "--license-link none: is neither a file"),
        (["--push"], "give --repo OWNER/NAME"),
        (["--repo", "a//b"], "--repo a//b: must be OWNER/NAME"),
        (["--held-out", "10000"], "--held-out: must be below the"),
        (["--held-out", "0.99999"], "--held-out 0.99999: leaves no rows for the split train"),
        (["--triplets", "near", "--min-score", "0.9"], "--min-score: is above the limit"),
        (["--triplets", "far"], "--triplets far: choose among near, number, negation"),
        (["--triplets", "near"], "has no encoder, which --triplets near needs; name an encoder"),
        (["--triplets", "near", "--triplets-model", "/nowhere"], "/nowhere: cannot be read"),
    ],
)
def test_wrong_options_are_one_line(
    run: Path, options: list[str], message: str, capsys: Capsys
) -> None:
    assert publish(run, *options) == 2
    assert message in one_line(capsys)
    assert not (run / "release").exists()


def test_a_licence_that_is_not_on_the_list(run: Path, tmp_path: Path) -> None:
    text = tmp_path / "terms.txt"
    text.write_text("Research only.")
    license = ["--license", "CzEng\n\n# <script>x</script>\n---\n*research* only"]
    assert publish(run, *license, "--license-link", str(text)) == 0
    head = metadata(run)
    name = "czeng-script-x-script-research-only"
    found = [head[key] for key in ("license", "license_name", "license_link")]
    assert found == ["other", name, "LICENSE"]
    assert (run / "release" / "LICENSE").read_text() == "Research only."
    assert "CzEng # &lt;script&gt;x&lt;/script&gt; --- \\*research\\* only, see LICENSE." in card(
        run
    )
    assert "Licence of the source: CC BY 4.0." in card(run)
    assert "<script" not in card(run)
    text.write_text("Everybody.")
    assert publish(run, *license, "--license-link", str(text)) == 0
    assert (run / "release" / "LICENSE").read_text() == "Everybody."
    assert publish(run, *license, "--license-link", "https://example.org/terms") == 0
    assert metadata(run)["license_link"] == "https://example.org/terms"
    assert not (run / "release" / "LICENSE").exists()


def test_from_an_object_store(
    run: Path, bucket: str, s3: list[str], tmp_path: Path, capsys: Capsys
) -> None:
    for path in [*run.glob("corpus/**/*.*"), *run.glob("*/_stage.json"), run / "run.json"]:
        name = path.relative_to(run).as_posix()
        storage.write_bytes(f"{bucket}/run/{name}", path.read_bytes())
    assert publish(f"{bucket}/run", "--", *s3) == 2
    assert "name a local folder with --out" in one_line(capsys)
    assert publish(f"{bucket}/run", "--out", str(tmp_path / "out"), "--", *s3) == 0
    assert publish(run) == 0
    for name in files_of(run / "release"):
        assert (tmp_path / "out" / name).read_bytes() == (run / "release" / name).read_bytes()


def test_a_full_disk_is_one_line(run: Path, full_disk: Path, capsys: Capsys) -> None:
    (full_disk / "filler").write_bytes(bytes(48 * 1024))
    assert publish(run, "--out", str(full_disk / "release")) == 2
    assert "No space left on device" in one_line(capsys)
    assert [path.name for path in full_disk.iterdir()] == ["filler"]


REPO = "me/captions"


class Hub:
    """The methods that a push needs; files by repository."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.refuses = ""

    def create_repo(self, repo: str, *, repo_type: str, private: bool, exist_ok: bool) -> str:
        if self.refuses:
            raise OSError(self.refuses)
        assert repo_type == "dataset" and exist_ok
        if repo not in self.repositories:
            self.repositories[repo], self.private[repo] = {".gitattributes": b""}, private
        return f"https://hub/datasets/{repo}"

    def list_repo_files(self, repo: str, *, repo_type: str) -> list[str]:
        return [*self.repositories[repo]]

    def upload_folder(
        self, *, folder_path: Path, repo_id: str, delete_patterns: list[str], **more: str
    ) -> None:
        assert more["repo_type"] == "dataset" and more["commit_message"]
        stay = {
            name: data
            for name, data in self.repositories[repo_id].items()
            if not any(fnmatch(name, pattern) for pattern in delete_patterns)
        }
        sent = {name: (folder_path / name).read_bytes() for name in files_of(folder_path)}
        self.repositories[repo_id] = {**stay, **sent}


@pytest.fixture
def hub(monkeypatch: Patch) -> Hub:
    """An empty Hub."""
    found = Hub()
    monkeypatch.setattr("huggingface_hub.HfApi", lambda **_: found)
    return found


def push(run: Path, *options: str) -> int:
    return publish(run, "--repo", REPO, "--push", *options)


def sent(hub: Hub) -> dict[str, bytes]:
    return {name: data for name, data in hub.repositories[REPO].items() if name != ".gitattributes"}


def release(run: Path) -> dict[str, bytes]:
    folder = run / "release"
    return {name: (folder / name).read_bytes() for name in files_of(folder)}


def test_every_file_is_sent_and_the_set_is_private(run: Path, hub: Hub, capsys: Capsys) -> None:
    assert push(run, "--dry-run") == 0
    assert hub.repositories == {}
    assert push(run) == 0
    assert f"uploaded to https://hub/datasets/{REPO}" in capsys.readouterr().out
    assert sent(hub) == release(run)
    assert hub.private == {REPO: True}


def test_the_next_release_replaces_the_files(run: Path, hub: Hub, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 20)
    monkeypatch.setattr(files, "FILE_ROWS", 20)
    assert push(run) == 0
    assert len(sent(hub)) > 12 and any("test-" in name for name in sent(hub))
    hub.repositories[REPO]["data/notes.txt"] = b"mine"
    hub.repositories[REPO]["triplets/train-00000-of-00001.parquet"] = b"no longer asked for"
    monkeypatch.setattr(files, "FILE_ROWS", 1000)
    assert push(run, "--held-out", "0") == 0
    assert sent(hub) == {**release(run), "data/notes.txt": b"mine"}
    assert not any("train-00001" in name or "test-" in name for name in sent(hub))


def test_a_push_that_is_refused(run: Path, hub: Hub, capsys: Capsys) -> None:
    hub.repositories[REPO] = {"data/train-00000-of-00001.parquet": b"theirs"}
    assert push(run) == 2
    assert f"--repo {REPO}: has files that `paraloom publish` did not upload" in one_line(capsys)
    assert sent(hub) == {"data/train-00000-of-00001.parquet": b"theirs"}
    hub.refuses = "403 Forbidden\nFor more information see the documentation"
    assert push(run) == 2
    line = one_line(capsys)
    assert f"--push: {REPO} was not uploaded completely; the same command resumes" in line
    assert "403 Forbidden For more" in line
    assert (run / "release").exists()


NAMES = ("id", "reference", "translation")
COLUMNS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in NAMES])
TEXTS = st.text(st.sampled_from("aAbB .!?é"), max_size=5)


def table(references: list[str], first: int = 0) -> pa.Table:
    texts = [
        {"reference": text, "translation": f"t {i} {text}"} for i, text in enumerate(references)
    ]
    rows = [{"id": str(first + i), **of} for i, of in enumerate(texts)]
    return pa.Table.from_pylist(rows, COLUMNS)


def plain(text: str) -> str:
    """Normalisation by its definition: lower case, letters only."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.lower()).split())


def read(folder: Path, split: SplitFiles) -> pa.Table:
    return pa.concat_tables([pq.read_table(folder / name) for name in split.files])


@settings(max_examples=40)
@given(st.lists(st.lists(TEXTS, max_size=8), max_size=5), st.floats(0, 0.999), st.integers(0, 9))
def test_rows_once_and_references_apart(parts: list[list[str]], share: float, seed: int) -> None:
    tables = [table(texts, 100 * i) for i, texts in enumerate(parts)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        full, pairs = write_configurations(folder, tables, COLUMNS, share, seed)
        found = {split.name: read(folder, split) for split in full.splits}
        both = [tuple(row.values()) for of in found.values() for row in of.to_pylist()]
        written = [tuple(row.values()) for of in tables for row in of.to_pylist()]
        assert sorted(both) == sorted(written)
        for name, of in found.items():
            out = held_out(of["reference"].combine_chunks(), share, seed)
            assert (out == (name == "test")).all()
        references = [{plain(t) for t in of["reference"].to_pylist()} for of in found.values()]
        assert len(references) < 2 or references[0].isdisjoint(references[1])
        for split, other in zip(full.splits, pairs.splits, strict=True):
            assert split.rows == other.rows == found[split.name].num_rows
            renamed = found[split.name].drop(["id"]).rename_columns(PAIRS.names)
            assert read(folder, other).equals(renamed)


@settings(max_examples=40)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.floats(0, 0.999), st.integers(0, 9))
def test_a_references_split_depends_on_it_alone(texts: list[str], share: float, seed: int) -> None:
    together = held_out(pa.array(texts), share, seed)
    alone = [held_out(pa.array([text]), share, seed)[0] for text in texts]
    assert list(together) == alone
    assert (held_out(pa.array([f"{t.upper()}!" for t in texts]), share, seed) == together).all()
    assert (held_out(pa.array(texts), min(share * 1.5, 1), seed) >= together).all()


def test_the_share_is_met_and_the_seed_counts() -> None:
    texts = pa.array([f"sentence {i}" for i in range(20_000)])
    one, other = held_out(texts, 0.1, 1), held_out(texts, 0.1, 2)
    assert abs(one.mean() - 0.1) < 0.01 and abs(other.mean() - 0.1) < 0.01
    assert (one & other).mean() < 0.02
    assert not held_out(texts, 0, 1).any()
    few = pa.array([f"Sentence {i}!" for i in range(40)])  # the same from version to version
    assert np.flatnonzero(held_out(few, 0.2, 1)).tolist() == [9, 16, 22, 29, 36, 38]


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_files_have_a_limit_however_rows_come(cut: int, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 10)
    monkeypatch.setattr(files, "FILE_ROWS", 30)
    rows = table([f"reference {i}" for i in range(75)])
    (tmp_path / "data").mkdir()
    writer = SplitWriter(tmp_path / "data", "train", COLUMNS)
    for start in range(0, 75, cut):
        writer.write(rows.slice(start, cut))
    split = writer.finish()
    assert split.files == tuple(f"data/train-0000{i}-of-00003.parquet" for i in range(3))
    assert [*(tmp_path / "data").glob("*.unnamed")] == []
    assert split.rows == 75 and read(tmp_path, split).equals(rows)
    opened = [pq.read_metadata(tmp_path / name) for name in split.files]
    groups = [[of.row_group(i).num_rows for i in range(of.num_row_groups)] for of in opened]
    assert groups == [[10, 10, 10], [10, 10, 10], [10, 5]]
    assert split.size == sum((tmp_path / name).stat().st_size for name in split.files)


def test_a_file_ends_when_it_is_large(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "GROUP_ROWS", 100)
    monkeypatch.setattr(files, "FILE_BYTES", 2_000)
    generator = np.random.default_rng(1)
    rows = table([generator.bytes(20).hex() for _ in range(500)])
    writer = SplitWriter(tmp_path, "test", COLUMNS)
    writer.write(rows)
    assert len(writer.finish().files) == 5
