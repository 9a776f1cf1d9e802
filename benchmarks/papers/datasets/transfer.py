"""Classification data for the evaluation of sentence vectors, in their published formats."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.errors import UserError
from paraloom.models.text.files import opened


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledSentences:
    """n sentences or sentence pairs with labels."""

    first: pa.StringArray  # [n]
    second: pa.StringArray | None = None  # [n], the second sentences of pairs
    labels: NDArray[Any]  # [n]: classes (strings), or numbers on a scale (float64)

    def __len__(self) -> int:
        return len(self.labels)


_Reader = Callable[[Path], LabelledSentences]


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferTask:
    """A task with its data."""

    name: str
    train: LabelledSentences
    test: LabelledSentences | None  # None: use cross-validation
    tested: str  # the part to report: 10-fold, dev, validation, trial or test


class _Form:
    """A published form of a task: a reader, training files, and possible test files, best first."""

    def __init__(self, read: _Reader, *train: str, **tests: str) -> None:
        self.read, self.train, self.tests = read, train, tests


def find_tasks(folder: Path | str) -> tuple[list[TransferTask], list[str]]:
    """Find files by name below a folder. Return the tasks, and the names of missing tasks."""
    folder = Path(folder)
    files: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files.setdefault(path.name, path)
    tasks, missing = [], []
    for name, forms in _TASKS.items():
        form = next((form for form in forms if all(file in files for file in form.train)), None)
        if form is None:
            missing.append(name)
            continue
        train = _concatenate([form.read(files[file]) for file in form.train])
        tested = next((part for part, file in form.tests.items() if file in files), None)
        test = form.read(files[form.tests[tested]]) if tested else None
        tasks.append(TransferTask(name=name, train=train, test=test, tested=tested or "10-fold"))
    if not tasks:
        names = ", ".join(_TASKS)
        raise UserError(f"{folder}: none of the transfer tasks is here ({names})")
    return tasks, missing


def _concatenate(files: list[LabelledSentences]) -> LabelledSentences:
    second = [examples.second for examples in files if examples.second is not None]
    return LabelledSentences(
        first=pa.concat_arrays([examples.first for examples in files]),
        second=pa.concat_arrays(second) if second else None,
        labels=np.concatenate([examples.labels for examples in files]),
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with opened(path) as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.strip("\r")


def _class_of_name(path: Path) -> LabelledSentences:
    texts = pa.array([line.strip() for _, line in _lines(path)], pa.string())
    return LabelledSentences(first=texts, labels=np.full(len(texts), path.suffix))


def _rows(pattern: str, expected: str, *, header: bool = False) -> _Reader:
    def read(path: Path) -> LabelledSentences:
        rows = []
        for number, line in islice(_lines(path), header, None):
            found = re.fullmatch(pattern, line)
            if found is None:
                raise UserError(f"{path}, row {number}: {expected.format(line.strip())}")
            rows.append(found.groupdict())
        if not rows:
            raise UserError(f"{path}: no row with a label")
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        labels = np.array(columns.pop("label"))
        sides = {name: pa.array(texts, pa.string()) for name, texts in columns.items()}
        return LabelledSentences(**sides, labels=labels)

    return read


# Each line is `label text`. In TREC, the label is the first part of `LABEL:fine`.
_label_first = _rows(
    r"\s*(?=\S)(?P<label>[^ :]*)[^ ]* (?P<first>.*\S)\s*", "no text after the label {!r}"
)
_label_last = _rows(r"(?P<first>.*)\t\s*(?P<label>[^\t]*?)\s*", "no tab between text and label")
_mrpc = _rows(
    r"(?P<label>[01])\t[^\t]*\t[^\t]*\t(?P<first>[^\t]*)\t(?P<second>[^\t]*)",
    "expected 0 or 1, two numbers and two sentences between tabs",
    header=True,
)


def _sick(kind: Literal["relatedness", "entailment"]) -> _Reader:
    def read(path: Path) -> LabelledSentences:
        (data,) = read_labelled(path)
        labels: NDArray[Any] = data.scores
        if kind == "entailment":
            if data.entailment is None:
                raise UserError(f"{path}, row 1: no column entailment_judgment")
            labels = data.entailment.to_numpy(zero_copy_only=False).astype(str)
        return LabelledSentences(first=data.first, second=data.second, labels=labels)

    return read


def _two_classes(*files: str, all: str) -> tuple[_Form, ...]:
    return _Form(_class_of_name, *files), _Form(_label_first, all)


_SICK_FILES = {"test": "SICK_test_annotated.txt", "trial": "SICK_trial.txt"}
_TASKS: dict[str, tuple[_Form, ...]] = {
    "MR": _two_classes("rt-polarity.pos", "rt-polarity.neg", all="rt-polarity.all"),
    "CR": _two_classes("custrev.pos", "custrev.neg", all="custrev.all"),
    "SUBJ": _two_classes("subj.subjective", "subj.objective", all="subj.all"),
    "MPQA": _two_classes("mpqa.pos", "mpqa.neg", all="mpqa.all"),
    "SST": (
        _Form(_label_last, "sentiment-train", test="sentiment-test", dev="sentiment-dev"),
        _Form(_label_first, "stsa.binary.train", test="stsa.binary.test", dev="stsa.binary.dev"),
    ),
    "TREC": (
        _Form(_label_first, "train_5500.label", test="TREC_10.label"),
        _Form(_label_first, "TREC.train.all", test="TREC.test.all"),
    ),
    "MRPC": (
        _Form(_mrpc, "msr_paraphrase_train.txt", test="msr_paraphrase_test.txt"),
        _Form(_mrpc, "msr-para-train.tsv", test="msr-para-test.tsv", validation="msr-para-val.tsv"),
    ),
    "SICK-R": (_Form(_sick("relatedness"), "SICK_train.txt", **_SICK_FILES),),
    "SICK-E": (_Form(_sick("entailment"), "SICK_train.txt", **_SICK_FILES),),
}
