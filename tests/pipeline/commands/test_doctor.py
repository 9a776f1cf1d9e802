import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from paraloom.models.nmt import gpu
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run import doctor
from tests.json_schema import errors_of
from tests.run_helpers import Capsys, Patch

Told = Callable[[], tuple[int, dict[str, tuple[str, str]]]]


@pytest.fixture
def told(capsys: Capsys) -> Told:
    """The exit code, and each check's state and what it found."""

    def tell() -> tuple[int, dict[str, tuple[str, str]]]:
        code = main(["doctor", "--json", "-"])
        values = json.loads(capsys.readouterr().out)
        assert errors_of("doctor", values) == []
        assert values["sound"] == (code == 0)
        return code, {row["name"]: (row["state"], row["found"]) for row in values["checks"]}

    return tell


def test_what_this_machine_has(told: Told, monkeypatch: Patch, capsys: Capsys) -> None:
    code, rows = told()
    needed = ["engine ctranslate2, CPU", "engine fairseq"]
    assert [rows[name][0] for name in needed] == ["ok"] * 2
    assert "float32" in rows["engine ctranslate2, CPU"][1]
    wrong = [name for name, (state, _) in rows.items() if state == "fails"]
    assert code == (2 if wrong else 0)
    for name in ("GPU, torch", "GPU, ctranslate2"):
        assert rows[name][0] in ("ok", "no")
        assert rows[name][1]

    for name in ("_torch_gpu", "_ctranslate2_gpu"):  # no error that a machine has none
        monkeypatch.setattr(doctor, name, lambda: (False, "none"))
    code, rows = told()
    assert (code, rows["GPU, torch"]) == (0, ("no", "none"))
    assert main(["doctor"]) == 0
    assert "│ GPU, torch │ no │ none │" in " ".join(capsys.readouterr().out.split())


def test_what_is_missing_or_breaks_is_named_with_what_to_do(told: Told, monkeypatch: Patch) -> None:
    def no_fairseq() -> NoReturn:
        raise ModuleNotFoundError("No module named 'fairseq'")

    def broken() -> NoReturn:
        raise ImportError("libcudart.so: [Errno 2] cannot [open]\nmore")

    found = {"python": "3.11.9", "paraloom": "1", "fairseq-fixed": "not installed"}
    monkeypatch.setattr(doctor, "versions", lambda: found)
    monkeypatch.setattr(doctor, "_fairseq", no_fairseq)
    monkeypatch.setattr(doctor, "_ctranslate2", broken)
    code, rows = told()
    assert code == 2
    assert rows["libraries"] == ("no", "fairseq-fixed missing: pip install 'paraloom[all]'")
    needed = "fairseq is not installed: pip install 'paraloom[fairseq]'"
    assert rows["engine fairseq"] == ("no", needed)
    error = "ImportError: libcudart.so: [Errno 2] cannot [open]"
    assert rows["engine ctranslate2, CPU"] == ("fails", error)


def test_a_gpu_without_its_library_says_what_to_install(told: Told, monkeypatch: Patch) -> None:
    monkeypatch.setattr(gpu, "devices", lambda: [0, 1])
    monkeypatch.setattr(gpu, "load_cublas", lambda: False)
    _, rows = told()
    assert rows["GPU, ctranslate2"][0] == "no"
    assert rows["GPU, ctranslate2"][1].endswith("pip install nvidia-cublas-cu12")
    monkeypatch.setattr(gpu, "load_cublas", lambda: True)
    assert told()[1]["GPU, ctranslate2"] == ("ok", "2 device(s)")


def test_a_translation_model(nmt_model: Path, tmp_path: Path, capsys: Capsys) -> None:
    asked = ["doctor", "--model", str(nmt_model), "--sentence", "Jan má rád sýr.", "--json", "-"]
    assert main(asked) == 0
    values = json.loads(capsys.readouterr().out)
    assert errors_of("doctor", values) == []
    rows = {row["name"]: row["found"] for row in values["checks"]}
    assert rows["family"] == "fairseq"
    assert rows["languages"].startswith("cs into en; ")
    assert rows["tokeniser"] == "SentencePiece"
    assert re.fullmatch(r"[\d.]+ MB, [\d,]+ target subwords", rows["size"])
    assert rows["number types"].startswith("float32; cpu has ")
    assert re.fullmatch(r"Jan má rád sýr\. -> .+", rows["sentence"])
    assert re.fullmatch(r"[\d,]+ sentences/s at beam 12", rows["speed"])

    # A checkpoint that is chosen has the size of its folder.
    asked[2] = str(nmt_model / "checkpoint.pt")
    assert main(asked) == 0
    chosen = json.loads(capsys.readouterr().out)["checks"]
    assert {row["name"]: row["found"] for row in chosen}["size"] == rows["size"]

    (tmp_path / "dict.cs.txt").touch()
    assert main(["doctor", "--model", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "fairseq models also need *.pt, " in said
    assert said.count("\n") == 1
