"""Judgments that were made elsewhere, from a TSV file with a header."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from paraloom.beam_jobs.io import schema
from paraloom.models.embeddings.datasets.lines import tab_separated
from paraloom.models.errors import UserError
from paraloom.pipeline.judging.judgments import (
    Action,
    Fluency,
    JudgeFile,
    JudgeNameError,
    Key,
    Score,
    checked_name,
)
from paraloom.pipeline.judging.sampling import Pair, ScoredRun, as_pairs


class Row(BaseModel):
    """A row of the file; other columns are ignored, and empty cells are None."""

    model_config = ConfigDict(frozen=True)

    number: int
    judge: str
    id: str | None = None
    candidate: int | None = None
    reference: str | None = None
    translation: str | None = None
    score: Score
    fluency: Fluency | None = None

    @model_validator(mode="after")
    def _names_a_pair(self) -> Row:
        if self.id is None and (self.reference is None or self.translation is None):
            raise ValueError("has neither an id nor both texts")
        return self

    def is_of(self, pair: Pair) -> bool:
        """Whether the pair has everything that the row says of it."""
        return all(
            value is None or value == getattr(pair, name)
            for name, value in self
            if name in ("id", "candidate", "reference", "translation")
        )


class Imported(NamedTuple):
    """Numbers of rows."""

    added: int
    unchanged: int  # judgments that the run has already
    unknown: list[Row]  # not of a pair of the run


def import_judgments(run: ScoredRun, path: str) -> Imported:
    """Add the judgments of a file to those of the run; nothing is added if a row is wrong.

    Columns: `judge` (by default the file's name), `id` (and `candidate`) or `reference` and
    `translation`, `score` from 0 to 100, `fluency` from 0 to 2 (may be left out).
    """
    rows = list(_read(Path(path)))
    pairs = _find(run, rows, path)
    actions: dict[str, dict[Key, tuple[Row, Action]]] = {}
    for row in rows:
        if (pair := pairs.get(row.number)) is None:
            continue
        of_judge = actions.setdefault(row.judge, {})
        if pair.key in of_judge:
            first = of_judge[pair.key][0].number
            raise UserError(
                f"{path}, row {row.number}: {row.judge} judged this pair in row {first} already"
            )
        action = Action(
            id=pair.id,
            candidate=pair.candidate,
            reference=pair.reference,
            translation=pair.translation,
            score=row.score,
            fluency=row.fluency,
        )
        of_judge[pair.key] = row, action
    if rows and not actions:
        raise UserError(f"{path}: none of its {len(rows):,} rows is of a pair of {run.folder}")
    added = 0
    files = {judge: JudgeFile(run.folder, judge) for judge in actions}
    for judge, file in files.items():
        new = [a for key, (_, a) in actions[judge].items() if file.actions.get(key) != a]
        file.append(new)
        added += len(new)
    unknown = [row for row in rows if row.number not in pairs]
    return Imported(added, len(pairs) - added, unknown)


def _read(path: Path) -> Iterator[Row]:
    lines = tab_separated(path)
    _, header = next(lines, (1, [""]))
    given = Path(path.name.removesuffix(".gz")).stem
    for name in ("score", "id" if "reference" not in header else "translation"):
        if name not in header:
            raise UserError(
                f"{path}, row 1: no column {name}; the columns are judge, id, candidate, "
                "reference, translation, score, fluency (id or both texts are enough)"
            )
    if repeated := [name for name in Row.model_fields if header.count(name) > 1]:
        raise UserError(f"{path}, row 1: two columns {repeated[0]}")
    for number, cells in tab_separated(path, len(header)):
        if number == 1:
            continue
        values = {name: cell for name, cell in zip(header, cells, strict=True) if cell}
        try:
            if "judge" not in header:
                values["judge"] = given
            row = Row.model_validate({**values, "number": number})
            checked_name(row.judge)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            message = first["msg"].removeprefix("Value error, ")
            text = f"{where}: {message}" if where else message
            raise UserError(f"{path}, row {number}: {text}") from error
        except JudgeNameError as error:
            raise UserError(f"{path}, row {number}: {error}") from error
        yield row


def _find(run: ScoredRun, rows: Sequence[Row], path: str) -> dict[int, Pair]:
    """The first pair of the run for each row that has one, by the row's number."""
    by_id: dict[str, list[Row]] = {}
    by_reference: dict[str, list[Row]] = {}
    for row in rows:
        if row.id is not None:
            by_id.setdefault(row.id, []).append(row)
        elif row.reference is not None:
            by_reference.setdefault(row.reference, []).append(row)
    ids = pa.array(by_id, pa.string())
    references = pa.array(by_reference, pa.string())
    found: dict[int, Pair] = {}
    for table in run.tables(["source", "reference", "translation"]):
        if schema.has_candidates(table):
            _check_candidates(rows, path)
        named = pc.or_(pc.is_in(table["id"], ids), pc.is_in(table["reference"], references))
        for pair in as_pairs(table.filter(named)):
            for row in (*by_id.get(pair.id, ()), *by_reference.get(pair.reference, ())):
                if row.is_of(pair):
                    found.setdefault(row.number, pair)
    return found


def _check_candidates(rows: Sequence[Row], path: str) -> None:
    for row in rows:
        if row.candidate is None and row.translation is None:
            raise UserError(
                f"{path}, row {row.number}: {row.id} has several translations; name one in the "
                "column candidate or translation"
            )
