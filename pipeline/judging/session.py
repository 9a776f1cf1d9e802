"""What the page does: the next pair of a judge, a judgment, a skipped pair, an action undone."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Literal

from werkzeug.exceptions import Conflict

from paraloom.pipeline.judging.judgments import (
    Action,
    Fluency,
    JudgeFile,
    JudgeName,
    PairName,
    Score,
)
from paraloom.pipeline.judging.sampling import Pair

Scale = Literal["0-100", "yes-no"]


class Target(PairName):
    """Who acts on which pair."""

    judge: JudgeName


class Answer(Target):
    """A judgment as the page sends it."""

    score: Score
    fluency: Fluency


class Session:
    """The sample of pairs, and the judges' files.

    Methods that take a pair raise a `Conflict` if it cannot be acted on.
    """

    def __init__(self, run: str, pairs: Sequence[Pair], scale: Scale) -> None:
        self.run, self.scale = run, scale
        self._pairs = {pair.key: pair for pair in pairs}
        self._files: dict[str, JudgeFile] = {}
        self._lock = Lock()

    def state(self, judge: str) -> dict[str, Any]:
        """The next pair of a judge, None after the last one, and the progress."""
        with self._lock:
            return self._state(self._file(judge))

    def judge(self, answer: Answer) -> dict[str, Any]:
        """Save a judgment; returns the new state."""
        if self.scale == "yes-no" and answer.score not in (0, 100):
            raise Conflict("on this scale a score is 0 or 100")
        return self._act(answer, score=answer.score, fluency=answer.fluency)

    def skip(self, target: Target) -> dict[str, Any]:
        """Leave a pair out; returns the new state."""
        return self._act(target)

    def undo(self, target: Target) -> dict[str, Any]:
        """Undo the judge's last action, which must be on this pair; `undone` is what it said."""
        with self._lock:
            file = self._file(target.judge)
            done = self._done(file)
            if not done or done[-1].key != target.key:
                raise Conflict("this is not the pair acted on last")
            file.append([Action(id=target.id, candidate=target.candidate, undone=True)])
            undone = done[-1].model_dump(include={"score", "fluency"})
            return {**self._state(file), "undone": undone}

    def _act(self, target: Target, **values: Any) -> dict[str, Any]:
        with self._lock:
            if (pair := self._pairs.get(target.key)) is None:
                raise Conflict("there is no such pair to judge")
            file = self._file(target.judge)
            file.append([pair.action(**values)])
            return self._state(file)

    def _file(self, judge: str) -> JudgeFile:
        if judge not in self._files:
            self._files[judge] = JudgeFile(self.run, judge)
        return self._files[judge]

    def _done(self, file: JudgeFile) -> list[Action]:
        """The judge's actions on pairs of the sample that still have the same texts."""
        return [
            action
            for action in file.actions.values()
            if (pair := self._pairs.get(action.key))
            and (pair.reference, pair.translation) == (action.reference, action.translation)
        ]

    def _state(self, file: JudgeFile) -> dict[str, Any]:
        done = self._done(file)
        keys = {action.key for action in done}
        pair = next((pair for key, pair in self._pairs.items() if key not in keys), None)
        last = done[-1] if done else None
        return {
            "pair": pair.model_dump() if pair else None,
            "judged": sum(action.score is not None for action in done),
            "skipped": sum(action.score is None for action in done),
            "total": len(self._pairs),
            "last": {"id": last.id, "candidate": last.candidate} if last else None,
        }
