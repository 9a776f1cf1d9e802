"""A toy model that is trained here in seconds, and models to change."""

import itertools
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.nmt import NmtOptions, Translator
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtTrainingOptions
from paraloom.models.nmt.train import train_nmt
from tests.once import made_once
from tests.small_model import SEED, new_pairs

WHO = {"muž": "a man", "žena": "a woman", "pes": "a dog", "kočka": "a cat", "dítě": "a child",
       "kluk": "a boy", "dívka": "a girl", "učitel": "a teacher"}  # fmt: skip
DOES = {"vidí": "sees", "hledá": "looks for", "nese": "carries", "maluje": "paints",
        "najde": "finds"}  # fmt: skip
WHAT = {"dům": "the house", "strom": "the tree", "knihu": "the book", "auto": "the car",
        "lampu": "the lamp", "stůl": "the table", "vodu": "the water",
        "chléb": "the bread"}  # fmt: skip
TINY = NmtTrainingOptions(
    pieces=150, layers=1, dim=64, heads=2, ffn=128, updates=120, warmup=30, batch_tokens=800,
    learning_rate=0.01, checkpoints=3, held_out=24,
)  # fmt: skip
CZECH = Languages("cs", "en")
SHORT = NmtOptions(max_source_subwords=30)  # half of `tests.hub_folders.LONGEST`


class Malicious:
    """An object that runs a command when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.trace}",)


def translator(folder: Path) -> Translator:
    return Translator(folder, SHORT, languages=CZECH, threads=1)


def toy_pairs() -> tuple[list[str], list[str]]:
    """Czech sentences and their English, in a fixed order."""
    triples = list(itertools.product(WHO, DOES, WHAT))
    sources = [f"{who.capitalize()} {does} {what}." for who, does, what in triples]
    references = [
        f"{WHO[who].capitalize()} {DOES[does]} {WHAT[what]}." for who, does, what in triples
    ]
    return sources, references


def write_pairs(path: Path, sources: Sequence[str], references: Sequence[str]) -> Path:
    """A Parquet file of pairs with ids."""
    ids = [f"pair-{row}" for row in range(len(sources))]
    pq.write_table(pa.table({"id": ids, "source": sources, "reference": references}), path)
    return path


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pairs(tmp_path_factory.mktemp("toy") / "pairs.parquet", *toy_pairs())


@pytest.fixture(scope="session")
def toy_model(toy_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder, trained on the toy corpus; do not change it."""

    def train(folder: Path) -> None:
        train_nmt([toy_corpus], folder / "toy", TINY, seed=SEED, threads=1)

    return made_once(tmp_path_factory, "toy-model", train) / "toy"


@pytest.fixture
def model(toy_model: Path, tmp_path: Path) -> Path:
    """A copy of the toy model, to change."""
    return Path(shutil.copytree(toy_model, tmp_path / "model"))


@pytest.fixture(scope="session")
def czech() -> list[str]:
    """64 short sentences of the sample."""
    return [source for source, _ in new_pairs(64)]


@pytest.fixture
def copy(hub_model: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of such a folder, to change."""

    def get(family: str) -> Path:
        return Path(shutil.copytree(hub_model(family), tmp_path / family))

    return get
