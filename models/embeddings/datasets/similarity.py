"""Readers of labelled sentence pairs: SemEval STS, the STS Benchmark, SICK and judgments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.embeddings.datasets.lines import rows_of, wrong_columns
from paraloom.models.errors import UserError, reading
from paraloom.models.files import PACKED, distinct_names, looked_up, own_place

# Test sets by year. Many collections lack MSRvid (2012) and SMT (2013) because of licences.
SEMEVAL = {
    "2012": ("MSRpar", "MSRvid", "OnWN", "SMTeuroparl", "SMTnews"),
    "2013": ("FNWN", "OnWN", "SMT", "headlines"),
    "2014": ("OnWN", "deft-forum", "deft-news", "headlines", "images", "tweet-news"),
    "2015": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "2016": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
    "2017": ("track5.en-en",),
}
_ENGLISH_2017 = ("en-en", "STS.en-en", "STS2017.en-en", "STS.input.track5.en-en", "track5")
"""Names of the test set of 2017 in other collections."""
STS_BENCHMARK = {"sts-train": "train", "sts-dev": "dev", "sts-test": "test"}
"""Splits of the STS Benchmark by the name of their file."""

STS_SCALE, SICK_SCALE, JUDGMENT_SCALE = (0.0, 5.0), (1.0, 5.0), (0.0, 100.0)
ENTAILMENT = ("NEUTRAL", "ENTAILMENT", "CONTRADICTION")

_DATA = re.compile(rf"\.[tc]sv({PACKED.pattern})?$")
_SICK = {"SICK_train.txt": "train", "SICK_trial.txt": "trial", "SICK_test_annotated.txt": "test"}
_SICK_COLUMNS = ("sentence_A", "sentence_B", "relatedness_score")
_JUDGMENT = "entailment_judgment"
_TRANSLATIONS = ("paraphrase", "translation")  # names of the second sentence's column, in judgments


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledPairs:
    """A data set of n sentence pairs with similarity labels by people."""

    group: str  # group of data sets with a common mean, such as `STS 2014` or `STS 2012 train`
    name: str
    first: pa.StringArray  # [n]
    second: pa.StringArray  # [n]
    scores: NDArray[np.float64]  # [n]
    unscored: int = 0  # number of omitted rows, which have no score
    scale: tuple[float, float] = STS_SCALE  # lowest and highest possible score
    entailment: pa.StringArray | None = None  # [n]: labels in `ENTAILMENT`; only in SICK

    def __len__(self) -> int:
        return len(self.scores)


def read_sts(*paths: Path | str) -> list[LabelledPairs]:
    """Read STS data sets from files and folders. A folder may contain one folder per year.

    These files are read:

    - `<name>.tsv` with the columns score, sentence, sentence. Rows without a score are omitted.
    - `<name>.csv` with the same columns, separated by commas.
    - `<name>.csv` of the STS Benchmark, with seven or more tab-separated columns.

    `<name>.train.tsv` is training data with its own group. If two data sets have the same
    group and name, file names or names of parent folders distinguish them.
    """
    found: list[tuple[Path, LabelledPairs]] = []
    for path in map(Path, paths):
        files = [path] if path.is_file() else [*path.glob("*"), *path.glob("*/*")]
        files = [file for file in files if file == path or _DATA.search(file.name)]
        if not files:
            raise UserError(f"{path}: no STS data sets here (<year>/<data set>.tsv)")
        sets = [(own_place(of), _read_sts_file(of)) for of in sorted(files)]
        found += sorted(sets, key=lambda of: (of[1].group, of[1].name))
    names = []
    for file, of in found:
        groups = [of.group, *("/".join(file.parts[-k:-1]) for k in range(3, len(file.parts)))]
        names.append([(group, name) for group in groups for name in (of.name, file.name)])
    return [
        replace(of, group=group, name=name)
        for (_, of), (group, name) in zip(found, distinct_names(names), strict=True)
    ]


def read_sick(folder: Path | str) -> list[LabelledPairs]:
    """Read SICK_train.txt, SICK_trial.txt and SICK_test_annotated.txt, if present in a folder."""
    found = [file for name in _SICK if (file := Path(folder) / name).is_file()]
    if not found:
        raise UserError(f"{folder}: no SICK files here ({', '.join(_SICK)})")
    return [_read_sick_file(file) for file in found]


def _read_sick_file(path: Path) -> LabelledPairs:
    return _read_named(path, "SICK", _SICK.get(path.name, path.stem), _SICK_COLUMNS, SICK_SCALE)


def read_labelled(path: Path | str) -> list[LabelledPairs]:
    """Read a folder or file of SICK or STS, or a file of judgments with the columns `reference`,
    `paraphrase` (or `translation`) and `score` (0 to 100)."""
    path = Path(path)
    if path.is_file() or path.is_fifo():
        header = _header(path)
        translation = next((name for name in _TRANSLATIONS if name in header), None)
        if translation is not None and {"reference", "score"} <= set(header):
            name = path.name.removesuffix(".gz").removesuffix(".tsv")
            columns = ("reference", translation, "score")
            return [_read_named(path, "judgments", name, columns, JUDGMENT_SCALE)]
        return [_read_sick_file(path)] if "sentence_A" in header else read_sts(path)
    return read_sick(path) if any((path / name).is_file() for name in _SICK) else read_sts(path)


def read_ranking(paths: Sequence[Path | str], key: str) -> list[LabelledPairs]:
    """Read labelled pairs that can rank encoders. Raise UserError if all scores of a data set are
    equal. `key` is the configuration key that errors name."""
    found: list[LabelledPairs] = []
    for path in paths:
        if not Path(path).exists():
            raise UserError(f"{key}: {path} does not exist{looked_up(str(path))}")
        with reading(key):
            sets = read_labelled(path)
        for pairs in sets:
            if np.ptp(pairs.scores) == 0:
                raise UserError(
                    f"{key}: {path}: all {len(pairs):,} rows of {pairs.name} have the score "
                    f"{pairs.scores[0]:g}, so they cannot rank encoders"
                )
        found += sets
    if not found:
        raise UserError(f"{key}: names no file")
    return found


def missing(data: list[LabelledPairs]) -> dict[str, list[str]]:
    """Return the published data sets that are missing in each incomplete group of `data`."""
    published = {f"STS {year}": names for year, names in SEMEVAL.items()}
    published["SICK"] = tuple(_SICK.values())
    present = {(pairs.group, pairs.name) for pairs in data}
    lacking = {
        group: [name for name in published.get(group, ()) if (group, name) not in present]
        for group in dict.fromkeys(pairs.group for pairs in data)
    }
    return {group: names for group, names in lacking.items() if names}


def _read_sts_file(path: Path) -> LabelledPairs:
    folder = own_place(path).parent.name
    group = f"STS {folder}" if folder.isdecimal() else folder
    plain = Path(PACKED.sub("", path.name))
    name = plain.name.removesuffix(plain.suffix)
    if name.endswith(".train"):
        group, name = f"{group} train", name.removesuffix(".train")
    if group == "STS 2017" and name in _ENGLISH_2017:
        name = SEMEVAL["2017"][0]
    rows: list[tuple[str, str, float]] = []
    unscored = 0
    for number, row in rows_of(path):
        # In the STS Benchmark, columns 5 to 7 are the score and the sentences. More may follow.
        benchmark = plain.suffix == ".csv" and len(row) > 3
        columns = row[4:7] if benchmark else row
        if len(columns) != 3:
            expected = "7 or more" if benchmark else "3 (score, sentence, sentence)"
            raise wrong_columns(path, number, row, expected)
        if columns[0].strip():
            score = _score(columns[0], STS_SCALE, path, number)
            rows.append((columns[1], columns[2], score))
        else:
            unscored += 1
    return _labelled(path, group, name, rows, unscored=unscored)


def _read_named(
    path: Path, group: str, name: str, columns: Sequence[str], scale: tuple[float, float]
) -> LabelledPairs:
    """Read a file whose header contains `columns`: two sentences and their score."""
    header = _header(path)
    if absent := [column for column in columns if column not in header]:
        raise UserError(f"{path}, row 1: no column {', '.join(absent)}")
    rows, judgments = [], []
    for number, row in islice(rows_of(path, len(header)), 1, None):
        of = dict(zip(header, row, strict=True))
        first, second, label = (of[column] for column in columns)
        rows.append((first, second, _score(label, scale, path, number)))
        if group == "SICK" and _JUDGMENT in of:
            if of[_JUDGMENT] not in ENTAILMENT:
                expected = ", ".join(ENTAILMENT)
                raise UserError(f"{path}, row {number}: {of[_JUDGMENT]!r} is not among {expected}")
            judgments.append(of[_JUDGMENT])
    entailment = pa.array(judgments) if judgments else None
    return _labelled(path, group, name, rows, scale=scale, entailment=entailment)


def _labelled(
    path: Path, group: str, name: str, rows: list[tuple[str, str, float]], **more: Any
) -> LabelledPairs:
    if not rows:
        raise UserError(f"{path}: no row with a score")
    first, second, scores = zip(*rows, strict=True)
    return LabelledPairs(
        group=group,
        name=name,
        first=pa.array(first, pa.string()),
        second=pa.array(second, pa.string()),
        scores=np.array(scores),
        **more,
    )


def _header(path: Path) -> list[str]:
    _, header = next(rows_of(path), (1, [""]))
    return header


def _score(text: str, scale: tuple[float, float], path: Path, row: int) -> float:
    try:
        score = float(text)
    except ValueError as error:
        raise UserError(f"{path}, row {row}: the score {text!r} is not a number") from error
    lowest, highest = scale
    if not lowest <= score <= highest:
        raise UserError(f"{path}, row {row}: the score {text} is not in {lowest:g}–{highest:g}")
    return score
