"""The judgments of a run, in RUN/judgments/<judge>.jsonl.

The file of a judge is a log of actions, one JSON object per line. An action judges a pair, skips a
pair (no `score`) or makes a pair unjudged (`undone`). The last action on a pair counts. A killed
process can leave an incomplete last line, which is ignored.
"""

import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Annotated
from unicodedata import category

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.errors import UserError
from paraloom.models.files import locked

FOLDER = "judgments"
_SUFFIX = ".jsonl"
_NAME = re.compile(r"\w[\w .@+-]{0,59}(?<! )")

Key = tuple[str, int | None]
"""The id and the candidate number of a pair."""
PairTexts = tuple[str, str]
"""The reference and the translation of a pair."""
Score = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Fluency = Annotated[int, Field(ge=0, le=2)]


def checked_name(judge: str) -> str:
    """Return a judge's name if it can be the name of a file, else raise UserError."""
    without_marks = "".join("-" if category(letter)[0] == "M" else letter for letter in judge)
    if not _NAME.fullmatch(without_marks) or len(judge.encode()) > 200:
        raise UserError(
            f"{judge[:80]!r} cannot be a judge's name: it must have 1 to 60 letters, digits, "
            "spaces or . - _ + @, and begin with a letter or digit"
        )
    return judge


JudgeName = Annotated[str, AfterValidator(checked_name)]


class PairName(BaseModel):
    """The id and candidate number of a pair. With one candidate per source, the number is None."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    candidate: int | None = None

    @property
    def key(self) -> Key:
        """The id and the candidate number, as a tuple."""
        return self.id, self.candidate


class Action(PairName):
    """A line of a judge's file, with the texts that the judge saw."""

    reference: str = ""
    translation: str = ""
    score: Score | None = None  # shared meaning, 0 to 100; None if the judge skipped the pair
    fluency: Fluency | None = None  # 0 nonsense, 1 understandable, 2 fluent
    undone: bool = False  # whether this action makes the pair unjudged

    @property
    def pair(self) -> PairTexts:
        """The texts of the pair. They identify the pair, because its id may change."""
        return self.reference, self.translation


_Actions = dict[tuple[str, int | None, str, str], Action]  # by key and texts


class Judgment(Action):
    """One judge's label for one pair. The label applies to every pair with the same texts."""

    judge: str
    score: Score


def read_judgments(run: str) -> list[Judgment]:
    """Read the judgments of all judges, sorted by judge and id."""
    names = storage.names(storage.join(run, FOLDER))
    found = []
    for judge in sorted(name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)):
        done = _last_actions(run, judge).values()
        last = {of.pair if any(of.pair) else of.key: of for of in done}
        actions = sorted(last.values(), key=lambda action: (action.id, action.candidate or 0))
        found += [
            Judgment(judge=judge, **of.model_dump()) for of in actions if of.score is not None
        ]
    return found


def judgments_digest(run: str) -> str:
    """Return the digest of all judgments, or "" without judgments."""
    found = read_judgments(run)
    return content_key("judgments", *(each.model_dump() for each in found)) if found else ""


class JudgeFile:
    """The file of one judge, opened to append actions."""

    def __init__(self, run: str, judge: str) -> None:
        self._path = Path(run, FOLDER, f"{checked_name(judge)}{_SUFFIX}")
        self.actions = _last_actions(run, judge)  # in chronological order
        if self._path.exists():  # remove an incomplete last line
            whole = _whole_lines(data := self._path.read_bytes())
            if len(whole) < len(data):
                os.truncate(self._path, len(whole))
            if whole and not whole.endswith(b"\n"):
                with self._path.open("ab") as stream:
                    stream.write(b"\n")

    def append(self, actions: Iterable[Action]) -> None:
        """Write actions, and return when they are saved on disk. On an error, restore the file."""
        new = list(actions)
        lines = [f"{action.model_dump_json(exclude_defaults=True)}\n" for action in new]
        self._path.parent.mkdir(exist_ok=True)
        before = self._path.stat().st_size if self._path.exists() else 0
        try:
            with self._path.open("a", encoding="utf-8") as stream:
                stream.writelines(lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError:
            with suppress(OSError):
                os.truncate(self._path, before)
            raise
        _apply(self.actions, new)


def judging(run: str) -> AbstractContextManager[None]:
    """Lock a run against a second `paraloom judge`. Other commands ignore the lock."""
    if storage.is_remote(run):
        raise UserError(f"{run}: judgments need a run on this machine; copy the folder first")
    if not Path(run, "run.json").exists():
        raise UserError(f"{run}: no run here; the folder has no run.json")
    file = Path(run, FOLDER, ".lock")
    return locked(file, f"{run}: another paraloom judge is running here; stop it")


def _last_actions(run: str, judge: str) -> _Actions:
    path = storage.join(run, FOLDER, f"{judge}{_SUFFIX}")
    found: _Actions = {}
    if not storage.exists(path):
        return found
    data = _whole_lines(storage.read_bytes(path)).removeprefix(BOM_UTF8)
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if line.strip():
                _apply(found, [Action.model_validate_json(line)])
        except ValidationError as error:
            raise UserError(
                f"{path}: line {number} is not a judgment; correct or remove the line"
            ) from error
    return found


def _whole_lines(data: bytes) -> bytes:
    """Return a judge's file without an incomplete last line. Other invalid lines are kept."""
    last = data[data.rfind(b"\n") + 1 :]
    text = last.rstrip(b"\0")
    try:
        from_json(text.removeprefix(BOM_UTF8))
    except ValueError as error:
        text = b"" if "EOF" in str(error) else text
    return data.removesuffix(last) + text


def _apply(found: _Actions, actions: Iterable[Action]) -> None:
    for action in actions:
        named = (*action.key, *action.pair)  # imported judgments may repeat an id
        if action.undone and named not in found:
            named = next((of for of in reversed(found) if of[:2] == action.key), named)
        found.pop(named, None)  # move the pair to the end
        if not action.undone:
            found[named] = action
