"""Judgments that were made elsewhere, from a TSV file with a header."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, ValidationError

from paraloom.models.embeddings.datasets.lines import tab_separated, wrong_columns
from paraloom.models.errors import UserError
from paraloom.pipeline.judging.judgments import Action, Fluency, JudgeFile, JudgeName, Key, Score
from paraloom.pipeline.judging.sampling import Pair, ScoredRun, as_pairs

_NAMES = ("id", "candidate", "reference", "translation")  # what a row may say of its pair


class JudgedRow(BaseModel):
    """A row of the file; other columns are ignored, and empty cells are None."""

    model_config = ConfigDict(frozen=True)

    number: int
    judge: JudgeName
    id: str | None = None
    candidate: int | None = None
    reference: str | None = None
    translation: str | None = None
    score: Score
    fluency: Fluency | None = None

    def is_of(self, pair: Pair) -> bool:
        """Whether the pair has everything that the row says of it."""
        said = {name: value for name in _NAMES if (value := getattr(self, name)) is not None}
        return all(getattr(pair, name) == value for name, value in said.items())


class Imported(NamedTuple):
    """Numbers of rows."""

    added: int
    unchanged: int  # judgments that the run has already
    unknown: list[JudgedRow]  # not of a pair of the run


def import_judgments(run: ScoredRun, path: str) -> Imported:
    """Add the judgments of a file to the run's; nothing is added if a row is wrong.

    Columns: `judge` (by default the file's name), `id` (and `candidate`) or `reference` and
    `translation`, `score` from 0 to 100, `fluency` from 0 to 2 (may be left out).
    """
    rows = _read(Path(path))
    pairs = _find(run, rows, path)
    actions: dict[str, dict[Key, Action]] = {}
    for row in rows:
        if pair := pairs.get(row.number):
            of_judge = actions.setdefault(row.judge, {})
            if pair.key in of_judge:
                raise UserError(f"{path}, row {row.number}: {row.judge} judged this pair already")
            of_judge[pair.key] = pair.action(score=row.score, fluency=row.fluency)
    if rows and not actions:
        raise UserError(f"{path}: none of its {len(rows):,} rows is of a pair of {run.folder}")
    added = 0
    files = {judge: JudgeFile(run.folder, judge) for judge in actions}
    for judge, file in files.items():
        new = [action for key, action in actions[judge].items() if file.actions.get(key) != action]
        file.append(new)
        added += len(new)
    unknown = [row for row in rows if row.number not in pairs]
    return Imported(added, len(pairs) - added, unknown)


def _read(path: Path) -> list[JudgedRow]:
    lines = tab_separated(path)
    _, header = next(lines, (1, [""]))
    for name in ("score", "id" if "reference" not in header else "translation"):
        if name not in header:
            raise UserError(
                f"{path}, row 1: no column {name}; the columns are judge, id, candidate, "
                "reference, translation, score, fluency (id or both texts are enough)"
            )
    given = {} if "judge" in header else {"judge": Path(path.name.removesuffix(".gz")).stem}
    rows = []
    for number, cells in lines:
        if len(cells) != len(header):
            raise wrong_columns(path, number, cells, len(header))
        values = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
        try:
            row = JudgedRow.model_validate({**given, **values, "number": number})
        except ValidationError as error:
            first = error.errors()[0]
            message = first["msg"].removeprefix("Value error, ")
            raise UserError(f"{path}, row {number}: {first['loc'][0]}: {message}") from error
        if row.id is None and (row.reference is None or row.translation is None):
            raise UserError(f"{path}, row {number}: has neither an id nor both texts")
        rows.append(row)
    return rows


def _find(run: ScoredRun, rows: Sequence[JudgedRow], path: str) -> dict[int, Pair]:
    """The first pair of the run for each row that has one, by the row's number."""
    by_name: dict[str, list[JudgedRow]] = {}  # the id, or the reference of rows without one
    for row in rows:
        by_name.setdefault(row.id or row.reference or "", []).append(row)
    names = pa.array(by_name, pa.string())
    found: dict[int, Pair] = {}
    for table in run.tables(["source", "reference", "translation"]):
        named = pc.or_(pc.is_in(table["id"], names), pc.is_in(table["reference"], names))
        for pair in as_pairs(table.filter(named)):
            for row in (*by_name.get(pair.id, ()), *by_name.get(pair.reference, ())):
                if not row.is_of(pair):
                    continue
                if pair.candidate is not None and row.candidate is None and not row.translation:
                    raise UserError(
                        f"{path}, row {row.number}: {row.id} has several translations; name one in "
                        "the column candidate or translation"
                    )
                found.setdefault(row.number, pair)
    return found
