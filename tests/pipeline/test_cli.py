import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pytest

from paraloom.models.errors import reading
from paraloom.pipeline.cli import COMMANDS, PANELS, PAPERS, main
from paraloom.pipeline.config import Config
from tests.run_helpers import Capsys, Patch, one_line

ROOT = Path(__file__).resolve().parents[2]

GOOD = """
run: {run}
input: {{format: tsv, paths: [{run}/a.tsv]}}
nmt: {{model: {run}/model}}
score: {{scorers: [translation_score]}}
select: {{by: translation_score}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "c.yaml"
    path.write_text(GOOD.format(run=tmp_path / "run"))
    return path


def real(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paraloom.pipeline.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_an_error_of_the_user_is_one_line_and_exit_code_2(config: Path) -> None:
    done = real("corpus", "--config", str(config), "--set", "nmt.beem=3")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "paraloom: --set nmt.beem: unknown key; did you mean beam?\n"


def test_an_error_says_what_a_path_is_relative_to(
    config: Path, tmp_path: Path, capsys: Capsys, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "model").mkdir(parents=True)
    where = f"(relative to the current folder, {tmp_path})"
    for change, said in (
        ("input.paths=[a.tsv]", f"a.tsv: no such file {where}"),
        ("input.paths=[a*.tsv]", f"a*.tsv: no file matches {where}"),
        ("score.paragram=v.txt", f"score.paragram: v.txt is not there {where}"),
        ("score.paragram=/none/v.txt", "score.paragram: /none/v.txt is not there"),
    ):
        assert main(["ingest", "--config", str(config), "--set", change]) == 2
        assert one_line(capsys) == f"paraloom: {said}"


def test_what_cannot_be_done_is_found_before_any_work(
    config: Path, tmp_path: Path, capsys: Capsys
) -> None:
    change = ["--set", "embeddings.model=word-agv", "--set", "nmt.model=null"]
    assert main(["corpus", "--config", str(config), *change]) == 2
    assert "embeddings.model: " in one_line(capsys)
    (tmp_path / "run" / "model").mkdir(parents=True)
    assert main(["train-nmt", "--config", str(config)]) == 2
    assert "nothing to do for nmt" in one_line(capsys)


def test_a_run_folder_that_cannot_be_written(config: Path, tmp_path: Path, capsys: Capsys) -> None:
    (tmp_path / "file").touch()
    change = ["--set", f"run={tmp_path}/file/run", "--set", "nmt.model=null"]
    assert main(["ingest", "--config", str(config), *change]) == 2
    assert "file/run/.lock: cannot be written (" in one_line(capsys)


class PanicException(BaseException):
    pass


@pytest.mark.parametrize("kind", [ZeroDivisionError, PanicException])
def test_a_bug_is_told_in_one_line_and_its_traceback_kept(
    kind: type[BaseException], config: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    import paraloom.pipeline.run

    def bug(*args: Any, **kwargs: Any) -> NoReturn:
        with reading(config):
            raise kind("Traceback …\nthe last line\x1b")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(paraloom.pipeline.run, "run_stages", bug)
    assert main(["select", "--config", str(config)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"paraloom: {config}: the last line\\x1b (the traceback is in ")
    (log,) = (tmp_path / "paraloom" / "errors").iterdir()
    assert str(log) in line and ", in bug\n" in log.read_text()


@pytest.mark.parametrize(
    ("stream", "argument", "target"),
    [
        ("stdout", "--version", "/dev/full"),
        ("stdout", "--help", "closed pipe"),
        ("stderr", "nothing", "/dev/full"),
    ],
)
def test_only_a_difference_ends_with_1(stream: str, argument: str, target: str) -> None:
    """Neither does an answer that cannot be written, nor an error that nobody can read."""
    reading, descriptor = os.pipe()
    os.close(reading)
    if target == "/dev/full":
        os.close(descriptor)
        descriptor = os.open(target, os.O_WRONLY)
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: descriptor}
    command = [sys.executable, "-m", "paraloom.pipeline.cli", argument]
    done = subprocess.run(command, cwd=ROOT, stdout=streams["stdout"], stderr=streams["stderr"])
    os.close(descriptor)
    assert done.returncode == 2


@pytest.mark.parametrize("cause", [None, KeyboardInterrupt()])
def test_an_interrupt_says_what_to_do(
    cause: BaseException | None, config: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    """Modules that pybind11 made turn one of their import into an ImportError."""
    import paraloom.pipeline.run

    def interrupted(*args: Any, **kwargs: Any) -> NoReturn:
        raise (ImportError("initialization failed") if cause else KeyboardInterrupt()) from cause

    monkeypatch.setattr(paraloom.pipeline.run, "run_stages", interrupted)
    assert main(["select", "--config", str(config)]) == 130
    assert "the same command resumes" in one_line(capsys)


def test_arguments_reach_the_run(config: Path, monkeypatch: Patch) -> None:
    import paraloom.pipeline.run

    calls = []

    def run_stages(
        config: Config, targets: Sequence[str], beam: Sequence[str], *, force: bool
    ) -> None:
        calls.append((config.seed, targets, list(beam), force))

    monkeypatch.setattr(paraloom.pipeline.run, "run_stages", run_stages)
    path = str(config)
    assert main(["bucket", "--config", path, "--set", "seed=4", "--", "--runner", "X"]) == 0
    assert main(["corpus", "--force", "--config", path]) == 0
    assert calls == [
        (4, ("bucket",), ["--runner", "X"], False),
        (1, ("select", "embeddings", "evaluate"), [], True),
    ]


def test_beam_options_where_no_beam_is(capsys: Capsys) -> None:
    assert main(["doctor", "--", "--runner", "X"]) == 2
    assert one_line(capsys) == "paraloom: doctor takes no Beam options"
    assert main(["papers", "mteb", "--", "--runner", "X"]) == 2
    assert one_line(capsys) == "paraloom: mteb takes no Beam options"


EVERY = {entry.name: entry for entry in COMMANDS} | {
    f"papers {entry.name}": entry for entry in PAPERS
}


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


@pytest.mark.parametrize("words", EVERY)
def test_every_command_has_help_and_is_documented(words: str, capsys: Capsys) -> None:
    command = EVERY[words]
    assert main([*words.split(), "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Usage: paraloom {words} " in text
    assert f"{command.summary}." in text
    assert ("Options after -- go to Beam" in text) == command.beam
    documents = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert re.search(rf"\bparaloom {words}(?![\w-])", documents)


def test_every_command_is_listed_in_its_panel(capsys: Capsys) -> None:
    assert main(["--help"]) == 0
    panel, listed = None, {}
    for line in capsys.readouterr().out.splitlines():
        if title := re.match(r"╭─ (.+?) ─+╮$", line):
            panel = title[1]
        elif name := re.match(r"│ ([a-z]\S+) ", line):
            listed[name[1]] = panel
    assert listed == {entry.name: entry.panel for entry in COMMANDS} | {"papers": "The papers"}
    assert list(dict.fromkeys(listed.values())) == list(PANELS.values())


def test_the_version(capsys: Capsys) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"paraloom {metadata.version('paraloom')}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing command; see paraloom --help"),
        (["translate"], "no such command 'translate': did you mean 'back-translate'"),
        (["papers", "mtb"], "papers: no such command 'mtb': did you mean 'mteb'"),
        (["corpus"], "corpus: missing option '--config'; see paraloom corpus --help"),
        (["corpus", "--confg", "x"], "corpus: no such option: --confg (Possible options: --config"),
        (["explain", "x", "y", "z"], "explain: got unexpected extra argument(s) (z)"),
    ],
)
def test_a_usage_error_is_one_line(arguments: list[str], message: str, capsys: Capsys) -> None:
    assert main(arguments) == 2
    assert one_line(capsys).startswith(f"paraloom: {message}")


@pytest.mark.parametrize(
    ("words", "expected"), [("paraloom sta", "status"), ("paraloom corpus --fo", "--force")]
)
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    environment = {**os.environ, "_PARALOOM_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(words.count(" "))
    command = [sys.executable, "-m", "paraloom.pipeline.cli"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert expected in done.stdout.split()


HELP = "from paraloom.pipeline.cli import main; assert main({}) == 0"


@pytest.mark.parametrize(
    "code",
    [
        "import paraloom",
        HELP.format(["--help"]) + "; import time; assert time.process_time() < 1",
        HELP.format(["embed", "--help"]),
        HELP.format(["judge", "--help"]),
    ],
)
def test_the_import_and_help_import_nothing_heavy(code: str) -> None:
    heavy = "{'apache_beam', 'numpy', 'pyarrow', 'scipy', 'torch'}"
    code = f"{code}; import sys; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["set()"], done.stderr


def test_libraries_say_nothing_at_import() -> None:
    pytest.importorskip("fairseq")
    code = "from paraloom.pipeline.cli import main; main(['--version']); import fairseq"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""
