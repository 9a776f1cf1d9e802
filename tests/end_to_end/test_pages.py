"""The notebook, and the commands and Python blocks of the pages, on the sample: as they stand.

`make test-pages` runs this. Words such as FILE are replaced (`WORDS`); what is not run has a reason
(`LEFT_OUT`). The tests change one folder, in the order of the pages.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.run_helpers import ROOT
from tests.sample import LABELLED, SAMPLE, SIMILARITY, english_sentences
from tests.test_docs import PAGES, code_lines, fenced

pytestmark = pytest.mark.pages

BIN = Path(sys.executable).parent
MODEL = "runs/sample/embeddings"
CONFIGS = ("mine", "run", "french", "captions")
PROGRAMS = "apt-get|docker|git|kubectl|make|paraloom|pip|python|ssh"

WORDS = {
    r"--config FILE": "--config mine.yaml",
    r"--json FILE": "--json out.json",
    r"--pairs FILE": "--pairs corpus.tsv.gz",
    r"--out DIR": "--out out",
    r"--sts DIR": f"--sts {SIMILARITY}",
    r" --sick DIR": "",  # SICK is not in the sample
    r"--model DIR --model (DIR|NAME)": f"--model {MODEL} --model runs/mine/embeddings",
    r"--model DIR": f"--model {MODEL}",
    r"\b(sentence-transformers|models)/all-MiniLM-L6-v2": MODEL,
    r"--tokenizer tokenizer\.json": f"--tokenizer {MODEL}/tokenizer.json",
    r"corpus/part-\*": "runs/sample/corpus/part-*",
    r"--against DATA --against DATA": f"--against {SIMILARITY} --against sentences.txt",
    r"--against DATA": f"--against {SIMILARITY}",
    r"'unigram_f1 <= 0\.7'": "'content_overlap <= 0.7'",  # the sample's score
    r" --set input\.shard_rows=100000": "",  # would translate again
    r"\bRUN RUN\b": "runs/sample runs/copy",
    r"\bRUN\b": "runs/sample",
    r"\bNAME\b": "strict",
    r"\bPRICE\b": "1.5",
}

LEFT_OUT = {
    r"--runner FlinkRunner": "make test-flink runs the sample there",
    r"--runner DataflowRunner|gs://": "make test-dataflow runs the sample there",
    r"s3://": "tests/faults/object_storage.py runs the sample there",
    r"^(docker|kubectl) ": "no container engine",
    r"^(git clone|pip|apt-get|ssh|python -m spacy download) ": "sets up another machine",
    r"^make ": "a target, see the Makefile",
    r"configs/multi30k": "real data",
    r"--push": "sends to the Hub",
    r"--triplets": "needs a pipeline of spaCy: tests/pipeline/release/test_triplets.py",
    r"^paraloom generators": "needs a language model: tests/pipeline/test_generators.py",
}
"""Why some commands are not run."""


def commands() -> Iterator[tuple[str, str]]:
    """The pages, and the lines of their blocks that are commands."""
    for page in PAGES:
        for line in code_lines(page):
            line = line.removeprefix(".venv/bin/")
            if re.match(rf"({PROGRAMS})\s", line):
                yield page.name, line


COMMANDS = [
    pytest.param(line, id=f"{page}: {line}")
    for page, line in commands()
    if not any(re.search(pattern, line) for pattern in LEFT_OUT)
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the cells of the notebook ran: they made the sample's run."""
    folder = tmp_path_factory.mktemp("place")
    notebook = json.loads((ROOT / "docs" / "quickstart.ipynb").read_text("utf-8"))["cells"]
    cells = ["".join(cell["source"]) for cell in notebook if cell["cell_type"] == "code"]
    given(folder, "python -", "\n".join(cells))
    shutil.copytree(folder / "runs" / "sample", folder / "runs" / "copy")
    for name in CONFIGS:
        shutil.copytree(folder / "runs" / "sample", folder / "runs" / name)
        text = (SAMPLE / "sample.yaml").read_text("utf-8")
        text = text.replace("run: runs/sample", f"run: runs/{name}")
        text = text.replace("${PARALOOM_SAMPLE}", str(SAMPLE))
        named = "  named: {strict: {where: [content_overlap <= 0.6]}}\n"
        text = text.replace("select:\n", f"select:\n{named}")
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    texts = ["id", "reference", "translation"]
    rows = pq.read_table(folder / "runs" / "sample" / "bucket", columns=texts).to_pylist()[:150]
    lines = [row | {"score": number % 101} for number, row in enumerate(rows)]
    for name in ("mine", "french"):
        (folder / "runs" / name / "judgments").mkdir()
        judged = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / "runs" / name / "judgments" / "elsewhere.jsonl").write_text(judged)
    shutil.copy(LABELLED, folder / "labelled.tsv")
    shutil.copy(folder / "runs" / "sample" / "corpus.tsv.gz", folder)
    sentences = english_sentences(20)
    (folder / "sentences.txt").write_text("".join(f"{text}\n" for text in sentences))
    (folder / "pairs.tsv").write_text("".join(f"{text}\tA dog barks.\n" for text in sentences))
    return folder


def environment() -> dict[str, str]:
    """The reader's: no real data, no network, no window."""
    kept = {name: value for name, value in os.environ.items() if name != "PARALOOM_DATA"}
    own = {"MPLBACKEND": "agg", "BROWSER": "true", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
    return kept | own | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def given(folder: Path, line: str, program: str | None = None) -> subprocess.CompletedProcess[str]:
    """A line of the shell, as the reader gives it: it ends well."""
    shell, env = ["bash", "-c", line], environment()
    done = subprocess.run(shell, cwd=folder, env=env, input=program, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr
    return done


def served(folder: Path, line: str) -> None:
    """A command that serves a page until Ctrl-C: it says where, and then ends well."""
    process = subprocess.Popen(
        shlex.split(line),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    while "Ctrl-C" not in said and (more := process.stdout.readline()):
        said += more
    process.send_signal(signal.SIGINT)
    more, _ = process.communicate()
    assert process.returncode == 0, said + more
    assert "http://127.0.0.1:" in said


def test_the_notebook_ends_with_the_encoder_and_the_command_finds_all_done(place: Path) -> None:
    assert (place / MODEL / "model.safetensors").exists()
    assert " …" not in given(place, "paraloom corpus --config sample").stderr


def test_every_pattern_is_of_use() -> None:
    lines = [line for _, line in commands()]
    for pattern in (*WORDS, *LEFT_OUT):
        assert any(re.search(pattern, line) for line in lines), pattern


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_end_well(place: Path, line: str) -> None:
    for pattern, word in WORDS.items():
        line = re.sub(pattern, word, line)
    run = served if line.startswith("paraloom judge ") else given
    run(place, line)


@pytest.mark.parametrize("page", ["README.md", "docs/library.md", "docs/models.md"])
def test_python_blocks_run(place: Path, page: str) -> None:
    for block in fenced(ROOT / page, "python"):
        given(place, "python -", block)


def test_how_others_read_a_corpus(place: Path) -> None:
    """docs/columns.md, but for polars, which is not installed."""
    block, lines = fenced(ROOT / "docs" / "columns.md", "text")[0].splitlines(), []
    for line in block:
        if not line.startswith("polars."):
            lines += [f"import {line.split('.')[0]}", f"assert len({line})"]
    assert len(lines) == 4
    given(place, "python -", "\n".join(lines))
