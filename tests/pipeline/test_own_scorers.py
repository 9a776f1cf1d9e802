"""Scorers of a package and of a file go the whole way of a run, and resume."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, Patch, WriteConfig, again, ran, table

FILE = """
from pathlib import Path
import numpy as np
from paraloom.models.scorers import Scorer

def shout(pairs):
    with open({log!r}, "a") as log:
        log.write(f"{{len(pairs)}}\\n")
    values = [float(len(text)) * {factor} for text in pairs.translation_text.to_pylist()]
    return np.array([{broken} if "dog" in text else value for text, value in
                     zip(pairs.translation_text.to_pylist(), values)], np.float32)

loudness = Scorer(function=shout, meaning="letters of the translation", unit="letters",
                  range=(0, 1000), version={version})
"""
PACKAGE = """
import numpy as np
from paraloom.models.scorers import Scorer

def vowels(pairs):
    with open({log!r}, "a") as log:
        log.write(f"{{len(pairs)}}\\n")
    texts = pairs.translation_text.to_pylist()
    return np.array([sum(c in "aeiou" for c in t) / max(len(t), 1) for t in texts], np.float32)

SCORER = Scorer(function=vowels, meaning="share of vowels of the translation", unit="share",
                version={version})
"""


class Own:
    """A package and a file with a scorer each; every call of one writes a line to its log."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder / "site"
        self.entry = f"{folder / 'loud.py'}:loudness"

    def write_file(self, *, factor: int = 1, version: int = 1, broken: str = "value") -> None:
        code = FILE.format(log=str(self.log("loud")), factor=factor, version=version, broken=broken)
        (self.folder / "loud.py").write_text(code)

    def install(self, *, version: int = 1) -> None:
        """Write the files of the package and what installers write beside them."""
        shutil.rmtree(self.site, ignore_errors=True)
        about = self.site / f"vowel_score-{version}.dist-info"
        about.mkdir(parents=True)
        code = PACKAGE.format(log=str(self.log("vowel")), version=version)
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


def test_the_whole_way(
    tmp_path: Path,
    own: Own,
    write_config: WriteConfig,
    finished_run: Path,
    monkeypatch: Patch,
    capsys: Capsys,
) -> None:
    shutil.copytree(finished_run / "run", tmp_path / "run")  # its translations are not made again
    scorers = ["translation_score", "trigram_overlap", "vowel_share", own.entry]
    where = ["vowel_share >= 0.2", "loudness_decile in 1..9"]

    def run(name: str) -> list[str]:
        sys.modules.pop("vowel_score", None)
        code = again(name, tmp_path)
        _, err = capsys.readouterr()
        assert code == 0, err
        return ran(err)

    write_config(tmp_path, score={"scorers": scorers}, select={"by": "loudness", "where": where})
    assert run("select") == ["score", "bucket", "select"]
    bucket = table(tmp_path, "bucket")
    texts = bucket["translation"].to_pylist()
    assert bucket["loudness"].to_pylist() == [len(text) for text in texts]
    shares = [sum(c in "aeiou" for c in text) / max(len(text), 1) for text in texts]
    np.testing.assert_allclose(bucket["vowel_share"], shares, rtol=1e-6)
    assert {"loudness_decile", "vowel_share_decile"} <= set(bucket.column_names)
    corpus = table(tmp_path, "corpus")
    assert 0 < len(corpus) < len(bucket)
    assert min(corpus["vowel_share"].to_pylist()) >= 0.2
    assert own.rows("vowel") == own.rows("loud") == len(bucket)

    report = (tmp_path / "run" / "report" / "index.html").read_text()
    assert "Letters of the translation." in report
    assert "Share of vowels of the translation." in report
    assert "letters of the translation" in (tmp_path / "run" / "README.md").read_text()
    assert main(["explain", str(tmp_path / "run"), corpus["id"][0].as_py()]) == 0
    assert "loudness" in capsys.readouterr().out
    recorded = json.loads((tmp_path / "run" / "manifest.json").read_text())["stages"]["score"]
    assert recorded["scorers"]["vowel_share"]["unit"] == "share"

    assert run("select") == []
    own.install(version=2)
    assert run("select") == ["score"]  # the values are the same, so nothing after it runs
    assert (own.rows("vowel"), own.rows("loud")) == (len(bucket), 0)

    # A row that was rejected is scored anew by all scorers once it is accepted.
    own.write_file(factor=2, version=2, broken="float('nan')")
    assert run("select") == ["score", "bucket", "select"]
    dogs = sum("dog" in text for text in texts)
    assert len(table(tmp_path, "bucket")) == len(bucket) - dogs
    recorded = json.loads((tmp_path / "run" / "manifest.json").read_text())["stages"]["score"]
    assert recorded["rejected"]["loudness is not finite"] == dogs > 0
    assert (own.rows("vowel"), own.rows("loud")) == (0, len(bucket))
    own.write_file(factor=2)
    assert run("select") == ["score", "bucket", "select"]
    assert (own.rows("vowel"), own.rows("loud")) == (dogs, len(bucket))
    assert table(tmp_path, "bucket")["loudness"].to_pylist() == [2 * len(text) for text in texts]
    assert table(tmp_path, "bucket")["vowel_share"].equals(bucket["vowel_share"])
