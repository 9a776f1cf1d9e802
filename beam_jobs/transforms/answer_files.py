"""Store the answers of generators, so that no answer is requested twice.

    <stage>/_answers/<unit>/<attempt>.jsonl    an `Answer` per line

An attempt to process a unit first reads the answers of earlier attempts. On disk, it appends each
new answer to one file. In an object store, it writes an object every 200 answers or 10 seconds.
The files are not deleted. If one generator changes, the answers of other generators are still used.
"""

import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self

from pydantic import Field

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Measurements
from paraloom.models.chat.answers import Answer, Usage
from paraloom.models.errors import in_one_line

ANSWERS = "_answers"
_TOGETHER = 200  # maximum number of answers per object
_SECONDS = 10.0  # minimum time between objects with fewer answers


class GenerateMeasurements(Measurements):
    """The requests, tokens and seconds that each generator needed for the answers in a shard."""

    generators: dict[str, Usage] = Field(default_factory=dict)


class AnswerFiles:
    """Reads the existing answers for a unit, and writes new answers."""

    def __init__(self, output: str, unit: str) -> None:
        self.folder = storage.join(output, ANSWERS, unit)
        self._attempt = uuid.uuid4().hex[:12]
        self._stream: BinaryIO | None = None
        self._lines: list[bytes] = []
        self._since = time.monotonic()
        self._sent = 0

    def read(self) -> dict[str, Answer]:
        """Return the answers of all attempts, by key. Incomplete lines are skipped."""
        found: dict[str, Answer] = {}
        for name in storage.names(self.folder):
            for line in storage.read_bytes(storage.join(self.folder, name)).split(b"\n"):
                with suppress(ValueError):
                    answer = Answer.model_validate_json(line)
                    found.setdefault(answer.key, answer)
        return found

    def add(self, answer: Answer) -> None:
        """Write an answer to disk, or add it to the next object."""
        line = answer.model_dump_json(exclude_defaults=True).encode() + b"\n"
        if not storage.is_remote(self.folder):
            with in_one_line(f"{self.folder}: cannot be written"):
                if self._stream is None:
                    Path(self.folder).mkdir(parents=True, exist_ok=True)
                    path = Path(self.folder, f"{self._attempt}.jsonl")
                    self._stream = path.open("ab", buffering=0)
                self._stream.write(line)
            return
        self._lines.append(line)
        if len(self._lines) >= _TOGETHER or time.monotonic() - self._since > _SECONDS:
            self._send()

    def _send(self) -> None:
        name = f"{self._attempt}-{self._sent:06}.jsonl"
        storage.write_bytes(storage.join(self.folder, name), b"".join(self._lines))
        self._lines, self._since, self._sent = [], time.monotonic(), self._sent + 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._lines:
            self._send()
