"""Arguments and configurations that nobody means well: one line, exit code 2, no traceback."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from paraloom.models.files import digest
from paraloom.pipeline.cli import main
from tests.run_helpers import Capsys, Patch

LONG = "/tmp/" + 5000 * "x"


def line(capsys: Capsys, *arguments: str) -> str:
    """The one line that a command ends with."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert captured.err.startswith("paraloom: ")
    return captured.err


def write(folder: Path, values: dict[str, Any], text: str = "a\tb\n") -> str:
    """The file of a configuration that reads a.tsv, with some values changed."""
    (folder / "a.tsv").write_text(text)
    config: dict[str, Any] = {
        "run": str(folder / "run"),
        "input": {"format": "tsv", "paths": [str(folder / "a.tsv")]},
        "score": {"scorers": ["trigram_overlap"]},
        "select": {"by": "trigram_overlap"},
    }
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (config.setdefault(section, {}) if section else config)[name] = value
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return str(folder / "config.yaml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest", "--config", "/tmp/\udcff.yaml"], "this argument is not UTF-8"),
        (["ingest", "--config", "/tmp/\0.yaml"], "this argument holds a NUL character"),
        (["ingest", "--config", LONG], "File name too long"),
        (["ingest", "--config", "a\n\x1b[2Jb"], r"a\n\x1b[2Jb: cannot be read"),
        (["embed", "--model", LONG], "File name too long"),
    ],
)
def test_arguments(capsys: Capsys, arguments: list[str], message: str) -> None:
    assert message in line(capsys, *arguments)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("run", "a\0b", r"run: 'a\x00b' holds a NUL character"),
        ("run", "a\ud800b", r"run: 'a\ud800b' is not UTF-8"),
        ("input.paths", ["a\0"], r"input.paths[0]: 'a\x00' holds a NUL character"),
        ("score.resources", {"a\0": "x"}, r"score.resources: 'a\x00' holds a NUL character"),
        (
            "input.shard_rows",
            10**30,
            "input.shard_rows: must be less than or equal to 1000",
        ),
        ("embeddings.margin", float("nan"), "embeddings.margin: must be a finite"),
    ],
)
def test_values(tmp_path: Path, capsys: Capsys, key: str, value: Any, message: str) -> None:
    assert message in line(capsys, "select", "--config", write(tmp_path, {key: value}))


def test_errors_of_the_system_are_one_line(
    tmp_path: Path, capsys: Capsys, monkeypatch: Patch
) -> None:
    def fail(error: Exception) -> str:
        def raising(*_: Any) -> None:
            raise error

        monkeypatch.setattr("paraloom.pipeline.commands.run.status.status", raising)
        return line(capsys, "status", str(tmp_path))

    full = OSError(28, "No space left on device", "/a/b\x1b")
    assert r"/a/b\x1b: cannot be used (No space left on device)" in fail(full)
    assert "a file cannot be read or written (No space" in fail(OSError(28, "No space left"))
    assert "out of memory" in fail(MemoryError())
    assert "out of memory" in fail(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    of_a_worker = "ArrowMemoryError: realloc of size 9 failed [while running 'Count|Add']"
    assert "out of memory" in fail(RuntimeError(f"Traceback …\npyarrow.lib.{of_a_worker}"))


def test_a_file_name_that_is_not_utf8(tmp_path: Path, capsys: Capsys) -> None:
    Path(f"{tmp_path}/a\udcff.tsv").write_text("a\tb\n")
    config = write(tmp_path, {"input.paths": [f"{tmp_path}/*.tsv"]})
    found = line(capsys, "ingest", "--config", config)
    assert r"/a\udcff.tsv: its name is not UTF-8; rename it" in found
    assert len(digest(tmp_path)) == 64


def test_rows_send_nothing_to_the_terminal(tmp_path: Path, capsys: Capsys) -> None:
    escape = "\x1b]8;;http://evil\x1b\\\x1b[2J\x07"
    text = f"a\u202eb\tc{escape}\nx\u202ey\tz\n"
    one = ["--", "--direct_num_workers", "1"]
    assert main(["ingest", "--config", write(tmp_path, {}, text), *one]) == 0
    for id, shown in (("1-a.tsv:1", r"c\x1b]8;;http://evil"), ("1-a.tsv:2", r"x\u202ey")):
        assert main(["explain", str(tmp_path / "run"), id]) == 0
        out, err = capsys.readouterr()
        assert shown in out
        assert not {"\x1b", "\x07", "\u202e"} & {*out, *err}
    assert main(["status", str(tmp_path / "run")]) == 0
    assert main(["explain", str(tmp_path / "run"), escape]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and r"no row with the id \x1b]8;;" in err
