import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

from paraloom.models.errors import reading
from paraloom.pipeline.cli import COMMANDS, PAPERS, main
from paraloom.pipeline.config import Config
from paraloom.pipeline.stages import TARGETS
from tests.beam_jobs.bitext.test_bitext import made_id
from tests.run_helpers import ONE, ROOT, Capsys, Patch, one_line, refusal, small_config

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


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)


COMMAND = ("-m", "paraloom.pipeline.cli")


def test_an_error_of_the_user_is_one_line_and_exit_code_2(config: Path) -> None:
    done = python(*COMMAND, "corpus", "--config", str(config), "--set", "nmt.beem=3")
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
        ("score.paragram=v.txt", f"score.paragram: v.txt does not exist {where}"),
        ("score.paragram=/none/v.txt", "score.paragram: /none/v.txt does not exist"),
    ):
        found = refusal(capsys, "ingest", "--config", str(config), "--set", change)
        assert found == f"paraloom: {said}"


def test_what_cannot_be_done_is_found_at_once(config: Path, tmp_path: Path, capsys: Capsys) -> None:
    change = ["--set", "embeddings.model=word-agv", "--set", "nmt.model=null"]
    assert "embeddings.model: " in refusal(capsys, "corpus", "--config", str(config), *change)
    (tmp_path / "run" / "model").mkdir(parents=True)
    assert "has no stage nmt or" in refusal(capsys, "train-nmt", "--config", str(config))


@pytest.mark.parametrize("name", ["embed", "similarity"])
def test_a_closed_standard_stream(name: str, capsys: Capsys, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    said = "paraloom: the standard input is closed; connect it to a file or a pipe"
    assert refusal(capsys, name, "--model", "none") == said
    command = f"exec '{sys.executable}' -m paraloom.pipeline.cli --version 2>&-"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:9]) == (0, "paraloom ")


class PanicException(BaseException):
    pass


@pytest.mark.parametrize("kind", [ZeroDivisionError, PanicException])
def test_a_bug_is_told_in_one_line_and_its_traceback_kept(
    kind: type[BaseException], config: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    import paraloom.pipeline.run.make

    def bug(*args: Any, **kwargs: Any) -> NoReturn:
        with reading(config):
            raise kind("Traceback …\nthe last line\x1b")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(paraloom.pipeline.run.make, "run_stages", bug)
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
    command = [sys.executable, *COMMAND, argument]
    done = subprocess.run(command, cwd=ROOT, stdout=streams["stdout"], stderr=streams["stderr"])
    os.close(descriptor)
    assert done.returncode == 2


@pytest.mark.parametrize("cause", [None, KeyboardInterrupt()])
def test_an_interrupt_says_what_to_do(
    cause: BaseException | None, config: Path, monkeypatch: Patch, capsys: Capsys
) -> None:
    """Modules that pybind11 made turn one of their import into an ImportError."""
    import paraloom.pipeline.run.make

    def interrupted(*args: Any, **kwargs: Any) -> NoReturn:
        raise (ImportError("initialization failed") if cause else KeyboardInterrupt()) from cause

    monkeypatch.setattr(paraloom.pipeline.run.make, "run_stages", interrupted)
    before = signal.getsignal(signal.SIGINT)
    assert main(["select", "--config", str(config)]) == 130
    assert "the same command resumes" in one_line(capsys)
    assert signal.getsignal(signal.SIGINT) == before
    monkeypatch.setattr(sys, "argv", ["paraloom", "select", "--config", str(config)])
    try:
        assert main() == 130
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN, "the process ends in any case"
    finally:
        signal.signal(signal.SIGINT, before)


EVERY = {entry.name: entry for entry in COMMANDS}
EVERY |= {f"papers {entry.name}": entry for entry in PAPERS}


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def test_arguments_reach_the_run(config: Path, monkeypatch: Patch) -> None:
    import paraloom.pipeline.run.make

    calls = []

    def run_stages(
        config: Config, targets: Sequence[str], beam: Sequence[str], *, force: bool
    ) -> None:
        calls.append((config.seed, targets, list(beam), force))

    monkeypatch.setattr(paraloom.pipeline.run.make, "run_stages", run_stages)
    path = str(config)
    assert main(["bucket", "--config", path, "--set", "seed=4", "--", "--runner", "X"]) == 0
    assert main(["corpus", "--force", "--config", path]) == 0
    assert calls[0] == (4, ("bucket",), ["--runner", "X"], False)
    assert calls[1:] == [(1, TARGETS["corpus"], [], True)]


@pytest.mark.parametrize("words", EVERY)
def test_every_command_has_help_and_is_documented(words: str, capsys: Capsys) -> None:
    command = EVERY[words]
    assert main([*words.split(), "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"Usage: paraloom {words} " in text
    assert f"{command.summary}." in text
    assert ("Options after -- are for Beam" in text) == command.beam
    documents = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert re.search(rf"\bparaloom {words}(?![\w-])", documents)


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
        (["doctor", "--", "--runner", "X"], "doctor accepts no Beam options"),
        (["papers", "mteb", "--", "--runner", "X"], "mteb accepts no Beam options"),
        (["explain", "x", "y", "z"], "explain: got unexpected extra argument(s) (z)"),
    ],
)
def test_a_usage_error_is_one_line(arguments: list[str], message: str, capsys: Capsys) -> None:
    assert refusal(capsys, *arguments).startswith(f"paraloom: {message}")


@pytest.mark.parametrize(
    ("words", "expected"), [("paraloom sta", "status"), ("paraloom corpus --fo", "--force")]
)
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    environment = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = python(*COMMAND, **environment, _PARALOOM_COMPLETE="complete_bash")
    assert expected in done.stdout.split()


HELP = "from paraloom.pipeline.cli import main; assert main({}) == 0"


@pytest.mark.parametrize(
    "code",
    [
        "import paraloom",
        HELP.format(["--help"]),
        HELP.format(["embed", "--help"]),
        HELP.format(["judge", "--help"]),
    ],
)
def test_the_import_and_help_import_nothing_heavy(code: str) -> None:
    heavy = "{'apache_beam', 'numpy', 'pyarrow', 'scipy', 'torch'}"
    done = python("-c", f"{code}; import sys; print({heavy} & sys.modules.keys())")
    assert done.stdout.splitlines()[-1:] == ["set()"], done.stderr


def test_libraries_say_nothing_at_import() -> None:
    pytest.importorskip("fairseq")
    code = "from paraloom.pipeline.cli import main; main(['--version']); import fairseq"
    assert python("-c", code).stderr == ""


def write(folder: Path, values: dict[str, Any], text: str = "a\tb\n") -> str:
    """The file of a configuration that reads a.tsv, with some values changed."""
    (folder / "a.tsv").write_text(text)
    config = small_config(folder / "run", folder / "a.tsv")
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (config[section] if section else config)[name] = value
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return str(folder / "config.yaml")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("/tmp/\udcff.yaml", "this argument is not UTF-8"),
        ("a\n\x1b[2Jb", r"a\n\x1b[2Jb: cannot be read"),
        ({"score.resources": {"a\0": "x"}}, r"score.resources: 'a\x00' contains a NUL character"),
        ({"input.shard_rows": 10**30}, "input.shard_rows: must be less than or equal to 1000"),
        ({"select.precision": float("nan")}, "select.precision: must be a finite"),
    ],
)
def test_hostile_paths_and_values_are_one_line(
    tmp_path: Path, capsys: Capsys, given: Any, message: str
) -> None:
    path = given if isinstance(given, str) else write(tmp_path, given)
    assert message in refusal(capsys, "ingest", "--config", path)


def test_system_errors_are_one_line(tmp_path: Path, capsys: Capsys, monkeypatch: Patch) -> None:
    def fail(error: Exception) -> str:
        def raising(*_: Any) -> None:
            raise error

        monkeypatch.setattr("paraloom.pipeline.commands.run.status.status", raising)
        return refusal(capsys, "status", str(tmp_path))

    full = OSError(28, "No space left on device", "/a/b\x1b")
    assert r"/a/b\x1b: cannot be used (No space left on device)" in fail(full)
    assert "a file cannot be read or written (No space" in fail(OSError(28, "No space left"))
    assert "out of memory" in fail(MemoryError())
    assert "out of memory" in fail(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    of_a_worker = "ArrowMemoryError: realloc of size 9 failed [while running 'Count|Add']"
    assert "out of memory" in fail(RuntimeError(f"Traceback …\npyarrow.lib.{of_a_worker}"))


def test_rows_send_nothing_to_the_terminal(tmp_path: Path, capsys: Capsys) -> None:
    escape = "\x1b]8;;http://evil\x1b\\\x1b[2J\x07"
    text = f"a\u202eb\tc{escape}\nx\u202ey\tz\n"
    assert main(["ingest", "--config", write(tmp_path, {}, text), *ONE]) == 0
    second = made_id("x\u202ey", "z")
    for id, shown in (("1-a.tsv:1", r"c\x1b]8;;http://evil"), (second, r"x\u202ey")):
        assert main(["explain", str(tmp_path / "run"), id, f"--json={tmp_path / 'json'}"]) == 0
        out, err = capsys.readouterr()
        assert shown in out
        assert not {"\x1b", "\x07", "\u202e"} & {*out, *err}
    assert main(["status", str(tmp_path / "run")]) == 0
    assert main(["explain", str(tmp_path / "run"), escape]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err and r"no row with the id \x1b]8;;" in err
