"""`paraloom publish` without sending: the folder that it makes, and what it refuses."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from paraloom.beam_jobs import storage
from paraloom.models.files import digest
from paraloom.pipeline.cli import main
from paraloom.pipeline.release.release import files_of
from tests.pipeline.release.test_files import plain
from tests.run_helpers import Capsys, changed_record, one_line, part_file

TENTH = ("--held-out", "0.1")


def publish(run: Path | str, *options: str) -> int:
    return main(["publish", str(run), *TENTH, *options])


def card(run: Path) -> str:
    return (run / "release" / "README.md").read_text("utf-8")


def metadata(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(card(run).split("---\n")[1])
    return found


def test_datasets_opens_splits_and_configurations(
    run: Path,
    corpus: list[dict[str, Any]],
    tmp_path: Path,
    datasets: Any,
    card_names: Any,
    capsys: Capsys,
) -> None:
    assert publish(run) == 0
    printed = capsys.readouterr().out
    for name in files_of(run / "release"):
        assert f"{(run / 'release' / name).stat().st_size:,}  {name}\n" in printed
    assert "nothing was sent" in printed

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
    assert "exists and is no release" in one_line(capsys)
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
            "empty": "its corpus is empty", "none": "no run here that has a corpus",
            }[harm] in one_line(capsys)  # fmt: skip
    assert not (run / "release").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--license", "?"], "input.license is not set"),
        (["--license", "CC BY-SA 2.0"], "'CC BY-SA 2.0' is not on the Hub's list"),
        (["--license", "mine", "--license-link", "none"], "none"),
        (["--repo", "a/b/c", "--push"], "give --repo OWNER/NAME"),
        (["--held-out", "10000"], "--held-out: must be below the"),
        (["--triplets", "far"], "--triplets far: there are near, number, negation"),
        (["--triplets", "near"], "has no encoder to find neighbours with; name one with --tripl"),
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
    assert "name a folder with --out" in one_line(capsys)
    assert publish(f"{bucket}/run", "--out", str(tmp_path / "out"), "--", *s3) == 0
    assert publish(run) == 0
    for name in files_of(run / "release"):
        assert (tmp_path / "out" / name).read_bytes() == (run / "release" / name).read_bytes()


def test_a_full_disk_is_one_line(run: Path, full_disk: Path, capsys: Capsys) -> None:
    (full_disk / "filler").write_bytes(bytes(48 * 1024))
    assert publish(run, "--out", str(full_disk / "release")) == 2
    assert "No space left on device" in one_line(capsys)
    assert [path.name for path in full_disk.iterdir()] == ["filler"]
