"""Scorers of a package and of a file, and scores of files, go the whole way of a run."""

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.engine.shards import receipts
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, Patch, Runs, manifest, table

CODE = """
import numpy as np
from paraloom.models.scorers import Scorer

def function(pairs):
    with open({log!r}, "a") as log:
        log.write(f"{{len(pairs)}}\\n")
    return np.array([{value} for text in pairs.translation_text.to_pylist()], np.float32)

{name} = Scorer(function=function, meaning="{meaning} of the translation", unit="{unit}",
                range=(0, 1000), version={version})
"""


class Own:
    """A package and a file with a scorer each; every call of one writes a line to its log."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder / "site"
        self.entry = f"{folder / 'loud.py'}:loudness"

    def write_file(self, *, factor: int = 1, version: int = 1, broken: str = "") -> None:
        """Its score is `factor` times the letters; of a text with the word `broken`, NaN."""
        value = f"{factor} * len(text)"
        if broken:
            value += f" if {broken!r} not in text.split() else float('nan')"
        of = {"meaning": "letters", "unit": "letters", "log": str(self.log("loud"))}
        code = CODE.format(**of, name="loudness", value=value, version=version)
        (self.folder / "loud.py").write_text(code)

    def install(self, *, version: int = 1) -> None:
        """Write the files of the package and what installers write beside them."""
        shutil.rmtree(self.site, ignore_errors=True)
        about = self.site / f"vowel_score-{version}.dist-info"
        about.mkdir(parents=True)
        value = "sum(c in 'aeiou' for c in text) / max(len(text), 1)"
        of = {"meaning": "share of vowels", "unit": "share", "log": str(self.log("vowel"))}
        code = CODE.format(**of, name="SCORER", value=value, version=version)
        (self.site / "vowel_score.py").write_text(code)
        (about / "METADATA").write_text(f"Name: vowel-score\nVersion: {version}\n")
        entry = "[paraloom.scorers]\nvowel_share = vowel_score:SCORER\n"
        (about / "entry_points.txt").write_text(entry)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def rows(self, name: str) -> int:
        """How many rows the scorer has seen since the last call."""
        log = self.log(name)
        rows = sum(map(int, log.read_text().split())) if log.exists() else 0
        log.unlink(missing_ok=True)
        return rows


@pytest.fixture
def own(tmp_path: Path, monkeypatch: Patch) -> Own:
    found = Own(tmp_path)
    found.write_file()
    found.install()
    monkeypatch.syspath_prepend(str(found.site))
    return found


def test_scorers_of_others(a_run: Path, own: Own, runs: Runs, capsys: Capsys) -> None:
    scorers = ["translation_score", "trigram_overlap", "vowel_share", own.entry]
    where = ["vowel_share >= 0.2", "loudness_decile in 1..9"]

    def run(**changes: Any) -> list[str]:
        sys.modules.pop("vowel_score", None)
        return runs("select", a_run, **changes)

    changes = {"score": {"scorers": scorers}, "select": {"by": "loudness", "where": where}}
    assert run(**changes) == ["score", "bucket", "select"]
    bucket = table(a_run, "bucket")
    texts = bucket["translation"].to_pylist()
    assert bucket["loudness"].to_pylist() == [len(text) for text in texts]
    shares = [sum(c in "aeiou" for c in text) / max(len(text), 1) for text in texts]
    np.testing.assert_allclose(bucket["vowel_share"], shares, rtol=1e-6)
    assert {"loudness_decile", "vowel_share_decile"} <= set(bucket.column_names)
    corpus = table(a_run, "corpus")
    assert 0 < len(corpus) < len(bucket)
    assert min(corpus["vowel_share"].to_pylist()) >= 0.2
    assert own.rows("vowel") == own.rows("loud") == len(bucket)

    report = (a_run / "run" / "report" / "index.html").read_text()
    assert "Letters of the translation." in report
    assert "Share of vowels of the translation." in report
    assert "letters of the translation" in (a_run / "run" / "README.md").read_text()
    assert main(["explain", str(a_run / "run"), corpus["id"][0].as_py()]) == 0
    assert "loudness" in capsys.readouterr().out
    recorded = manifest(a_run)["stages"]["score"]
    assert recorded["scorers"]["vowel_share"]["unit"] == "share"

    assert run() == []
    own.install(version=2)
    assert run() == ["score"]  # the values are the same, so nothing after it runs
    assert (own.rows("vowel"), own.rows("loud")) == (len(bucket), 0)

    # A row that was rejected is scored anew by all scorers once it is accepted.
    words = Counter(word for text in texts for word in {*text.split()})
    word, rows = min(words.items(), key=lambda of: abs(of[1] - 10))  # whatever the model says
    own.write_file(factor=2, version=2, broken=word)
    assert run() == ["score", "bucket", "select"]
    assert len(table(a_run, "bucket")) == len(bucket) - rows > 0
    recorded = manifest(a_run)["stages"]["score"]
    assert recorded["rejected"]["loudness is not finite"] == rows
    assert (own.rows("vowel"), own.rows("loud")) == (0, len(bucket))
    own.write_file(factor=2)
    assert run() == ["score", "bucket", "select"]
    assert (own.rows("vowel"), own.rows("loud")) == (rows, len(bucket))
    assert table(a_run, "bucket")["loudness"].to_pylist() == [2 * len(text) for text in texts]
    assert table(a_run, "bucket")["vowel_share"].equals(bucket["vowel_share"])


def columns(folder: Path) -> list[dict[str, str]]:
    """The keys of the columns of each shard."""
    return [receipt.numbers["columns"] for receipt in receipts(str(folder / "run" / "score"))]


def test_columns_of_files(a_run: Path, runs: Runs) -> None:
    made = ["score", "bucket", "select"]
    ids = table(a_run, "back_translate", "id")["id"].to_pylist()
    values = {key: np.float32(i / 7) for i, key in enumerate(ids)}
    lines = [f"{key}\t{values[key]}" for key in ids[5:]]
    lines += [f"{ids[5]}\t{values[ids[5]]}", f"{ids[1]}\tnan", f"{ids[2]}\tinf", "another\t1"]
    (a_run / "comet.tsv").write_text("\n".join(lines))
    pq.write_table(pa.table({"id": ids, "score": range(len(ids))}), a_run / "kiwi-1.parquet")
    files = {"comet": str(a_run / "comet.tsv"), "kiwi": [str(a_run / "kiwi-*.parquet")]}
    changes = {"score": {"columns": files}, "select": {"by": "comet", "where": ["kiwi >= 10"]}}
    assert runs("select", a_run, **changes) == ["columns", *made]
    good = [key for key in ids if key not in (*ids[:4], ids[4], ids[5])]
    pairs = table(a_run, "score")
    assert pairs["id"].to_pylist() == good
    assert pairs["comet"].to_pylist() == [values[key] for key in good]
    assert pairs["kiwi"].to_pylist() == [ids.index(key) for key in good]
    rejected = table(a_run, "score/_rejected").to_pylist()
    assert {row["id"]: row["reason"] for row in rejected} == {
        **dict.fromkeys([ids[0], ids[3], ids[4]], "comet: no value for this id"),
        **dict.fromkeys([ids[1], ids[2]], "comet is not finite"),
        ids[5]: "comet: several values for this id",
    }
    chosen = table(a_run, "corpus")
    assert {"comet_decile", "kiwi_decile"} <= {*chosen.column_names}
    assert min(chosen["kiwi"].to_pylist()) >= 10
    assert manifest(a_run)["stages"]["columns"]["rows"]["comet"] == len(lines)
    report = (a_run / "run/report/index.html").read_text()
    assert "Computed elsewhere: read from comet.tsv." in report
    assert "read from kiwi-\\*.parquet" in (a_run / "run/README.md").read_text()
    assert runs("select", a_run) == []

    before = columns(a_run)
    (a_run / "comet.tsv").write_text("\n".join(lines[::-1]))
    assert runs("select", a_run) == ["columns"]  # the same values
    (a_run / "comet.tsv").write_text("\n".join(f"{key}\t{values[key] / 2}" for key in ids[::-1]))
    assert runs("select", a_run) == ["columns", *made]
    pairs = table(a_run, "score")
    assert pairs["id"].to_pylist() == ids  # also those that had no value before
    assert pairs["comet"].to_pylist() == [np.float32(values[key] / 2) for key in ids]
    assert pairs["kiwi"].to_pylist() == list(range(len(ids)))
    for old, new in zip(before, columns(a_run), strict=True):
        assert [name for name in new if new[name] != old[name]] == ["comet"]
