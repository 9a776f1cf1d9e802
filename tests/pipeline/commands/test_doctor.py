from collections.abc import Callable
from typing import NoReturn

import pytest

from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.run import doctor
from tests.run_helpers import Capsys, Patch

Told = Callable[[], tuple[int, dict[str, tuple[str, str]]]]


@pytest.fixture
def told(monkeypatch: Patch, capsys: Capsys) -> Told:
    monkeypatch.setenv("COLUMNS", "200")

    def tell() -> tuple[int, dict[str, tuple[str, str]]]:
        code = main(["doctor"])
        lines = [line for line in capsys.readouterr().out.splitlines() if line.count("│") == 4]
        cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]
        rows: dict[str, tuple[str, str]] = {}
        last = ""
        for name, mark, text in cells:
            last = name or last  # a long cell goes on in the next line
            before = rows.get(last, ("", ""))
            rows[last] = (before[0] or mark, f"{before[1]} {text}".strip())
        return code, rows

    return tell


def test_what_this_machine_has(told: Told) -> None:
    code, rows = told()
    needed = ["engine ctranslate2, CPU", "engine fairseq", "Moses tokeniser"]
    assert [rows[name][0] for name in needed] == ["ok"] * 3
    assert "float32" in rows["engine ctranslate2, CPU"][1]
    assert rows["Moses tokeniser"][1] == "it 's a dog ."
    wrong = [name for name, (mark, _) in rows.items() if mark == "fails"]
    assert code == (2 if wrong else 0)
    for name in ("GPU, torch", "GPU, ctranslate2"):
        assert rows[name][0] in ("ok", "no")
        assert rows[name][1]


def test_what_is_missing_or_breaks_is_named_with_what_to_do(told: Told, monkeypatch: Patch) -> None:
    def no_fairseq() -> NoReturn:
        raise ModuleNotFoundError("No module named 'fairseq'")

    def broken() -> NoReturn:
        raise ImportError("libcudart.so: [Errno 2] cannot [open]\nmore")

    found = {"python": "3.11.9", "paraloom": "1", "fairseq-fixed": "not installed"}
    monkeypatch.setattr(doctor, "versions", lambda: found)
    monkeypatch.setattr(doctor, "_fairseq", no_fairseq)
    monkeypatch.setattr(doctor, "_ctranslate2", broken)
    monkeypatch.setattr(doctor, "_torch_gpu", lambda: (False, "none"))
    code, rows = told()
    assert code == 2
    assert rows["libraries"] == ("no", "fairseq-fixed missing: pip install 'paraloom[all]'")
    needed = "fairseq is not installed: pip install 'paraloom[fairseq]'"
    assert rows["engine fairseq"] == ("no", needed)
    error = "ImportError: libcudart.so: [Errno 2] cannot [open]"
    assert rows["engine ctranslate2, CPU"] == ("fails", error)
    assert rows["GPU, torch"] == ("no", "none")
