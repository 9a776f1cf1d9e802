"""Translation of sentences, with scores."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraloom.models.errors import one_line
from paraloom.models.hub import fetch
from paraloom.models.nmt.engine import Engine, Hypothesis, Pieces, Ranked, Submit, length_class
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.text.cleaning import find_control

SCHEMA = pa.schema(
    [
        ("translation", pa.string()),
        ("translation_score", pa.float32()),
        ("translation_subwords", pa.int16()),
        ("reason", pa.string()),
    ]
)
_SPECIAL = frozenset({"<s>", "<pad>", "<blank>", "</s>"})


@dataclass
class Counters:
    """Counts from one call of `Translator.translate`."""

    sentences: int = 0
    tokens: int = 0  # target subwords, including ends of sentence
    batches: int = 0  # batches sent to the engine, including retries
    seconds: float = 0.0
    rejects: int = 0  # rows without a translation; a sentence has a row per candidate
    retries: int = 0  # batches sent again after an error, whole or in parts


class RetryHints(Protocol):
    """A record for repeated attempts at the same sentences, after a process died."""

    @property
    def smaller(self) -> int:
        """Factor by which batches are reduced."""

    def under_way(self, rows: Sequence[int]) -> None:
        """Record the rows of the next batch, in case the process dies."""


class Translator:
    """A translation model. Several threads may call `translate` and `score`.

    `device`, `gpus`, `compute_type` and `converted` have the same meaning as in `Engine`.
    Concurrent calls keep all GPUs busy if they have `under_way` sentences in total. This number is
    0 on a CPU and with `sampling`.

    >>> translator = Translator("models/cs-en", NmtOptions(beam=5), threads=2)
    >>> rows, counters = translator.translate(["Jan má rád sýr.", ""])
    >>> rows["reason"].to_pylist()
    [None, 'empty source']
    """

    def __init__(
        self,
        model: Path | str,
        options: NmtOptions | None = None,
        *,
        languages: Languages | None = None,
        threads: int | None = None,
        only: int | None = None,
    ) -> None:
        """Load the model.

        Args:
            model: a model folder, or a name on the Hugging Face Hub with an optional `@revision`.
            languages: required for multilingual models.
            threads: number of CPU cores; all by default.
            only: index of the GPU to use; all GPUs by default.
        """
        self.options = options or NmtOptions()
        self._model = open_model(fetch(str(model)), languages, self.options.tokenizer)
        self._subwords = self._model.subwords()
        self._special = _SPECIAL.union(self._model.layout.target_prefix)
        self._engine = Engine(self._model, self.options, threads, only)
        self._engine.check()
        self.device, self.compute_type = self._engine.device, self._engine.compute_type
        self.converted, self.gpus = self._engine.converted, self._engine.gpus
        self._budget = self.options.batch_tokens or self._engine.batch_tokens
        one_by_one = self.device == "cpu" or self.options.sampling is not None
        self.under_way = 0 if one_by_one else 2 * self._engine.parallel * self._engine.batch_rows
        self._limit = min(self.options.max_source_subwords, self._engine.max_source_subwords)

    def translate(
        self,
        sentences: pa.StringArray | pa.ChunkedArray | Sequence[str | None],
        hints: RetryHints | None = None,
        *,
        seed: int = 1,
    ) -> tuple[pa.RecordBatch, Counters]:
        """Translate sentences.

        Args:
            hints: given if an earlier process died while it translated these sentences.
            seed: for `sampling`. The same sentences and seed give the same translations.

        Returns:
            A record batch in the order of the sentences, and counters. With `candidates: N`, each
            sentence has N rows, best first. The batch has the columns `translation`,
            `translation_score` (natural logarithm of p(translation | source) per target subword),
            `translation_subwords` (including the end of sentence) and `reason`. Only a rejected row
            has a reason, and its other columns are null.
        """
        started = time.monotonic()
        texts = sentences if isinstance(sentences, Sequence) else sentences.to_pylist()
        sources = self._sources(texts)
        call, accepted = _Call(self, sources), []
        for row, source in enumerate(sources):
            if not source:
                call.reject(row, "empty source")
            elif len(source) > self._limit:
                call.reject(row, f"source of more than {self._limit} subwords")
            else:
                accepted.append(row)
        budget = self._budget // (hints.smaller if hints else 1)
        batches = list(batches_by_class(accepted, sources, budget, self._engine.batch_rows))
        # Sampling decodes one batch at a time, because samples depend on the order of batches.
        alone = hints is not None or self.options.sampling is not None
        search: AbstractContextManager[Submit] = nullcontext(self._engine.submit)
        if self.options.sampling:
            search = self._engine.sampler(seed, max(map(len, batches), default=0))
        with search as call.decode:
            call.run(batches, 1 if alone else len(batches), hints)
        if self.options.against_repetition():
            call.score_again()
        return call.finish(time.monotonic() - started)

    def _sources(self, texts: Sequence[str | None]) -> list[list[str]]:
        return self._subwords.encode([text or "" for text in texts])

    def score(
        self, sources: Sequence[str | None], references: Sequence[str | None]
    ) -> NDArray[np.float32]:
        """Return log p(reference | source) per target subword: float32 [n].

        The values are comparable to `translation_score`. A value is NaN if a side is empty or too
        long, or if the engine fails.
        """
        wanted = self._subwords.encode([text or "" for text in references], target=True)
        return self._score(self._sources(sources), wanted, 2 * self.options.max_source_subwords)

    def _score(
        self, given: Sequence[Pieces], wanted: Sequence[Pieces], most: int
    ) -> NDArray[np.float32]:
        """Score subwords. Targets of more than `most` subwords get NaN."""
        found = np.full(len(given), np.nan, np.float32)
        longest = min(most, self._engine.max_target_subwords)
        rows = [
            row
            for row, (source, target) in enumerate(zip(given, wanted, strict=True))
            if 0 < len(source) <= self._limit and 0 < len(target) <= longest
        ]
        longer = [max(pair, key=len) for pair in zip(given, wanted, strict=True)]

        def score(batch: Sequence[int]) -> None:
            found[batch] = self._engine.score(
                [given[row] for row in batch], [wanted[row] for row in batch]
            )

        def attempt(batch: Sequence[int]) -> None:
            in_halves(batch, score, lambda row, error: self._engine.check())

        with ThreadPoolExecutor(self._engine.parallel) as workers:
            list(workers.map(attempt, batches_by_tokens(rows, longer, self._budget)))
        return found

    def subwords_of(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """Return the number of target subwords, including the end of sentence: int16 [n]. A number
        above 32,767 becomes 32,767. `score` gives NaN for such long texts."""
        pieces = self._subwords.encode(texts, target=True)
        most = np.iinfo(np.int16).max
        return np.fromiter((min(len(of) + 1, most) for of in pieces), np.int16, len(pieces))


def batches_by_tokens(
    rows: Sequence[int], sources: Sequence[Pieces], budget: int
) -> Iterator[list[int]]:
    """Group rows of similar length into batches of at most `budget` subwords, including padding.

    Long sources come first, so that the last batches, during which some cores are idle, are short.
    A source that is longer than the budget gets its own batch.

    >>> list(batches_by_tokens([0, 1, 2], [["a"], ["a", "b"], ["c"]], budget=2))
    [[1], [0, 2]]
    """
    batch: list[int] = []
    longest = 0
    for row in sorted(rows, key=lambda row: -len(sources[row])):
        longest = longest or len(sources[row])
        if batch and (len(batch) + 1) * longest > budget:
            yield batch
            batch, longest = [], len(sources[row])
        batch.append(row)
    if batch:
        yield batch


def batches_by_class(
    rows: Sequence[int], sources: Sequence[Pieces], budget: int, most: int
) -> Iterator[list[int]]:
    """Group the rows of each `length_class` with `batches_by_tokens`, at most `most` per batch.

    >>> list(batches_by_class([0, 1, 2], [["a"] * 17, ["b"], ["c"] * 18], budget=60, most=9))
    [[2, 0], [1]]
    """
    classes: dict[int, list[int]] = {}
    for row in rows:
        classes.setdefault(length_class(len(sources[row])), []).append(row)
    for _, alike in sorted(classes.items(), reverse=True):
        for batch in batches_by_tokens(alike, sources, budget):
            yield from (batch[at : at + most] for at in range(0, len(batch), most))


def in_halves(
    rows: Sequence[int],
    work: Callable[[Sequence[int]], None],
    failed: Callable[[int, Exception], None],
) -> None:
    """Process a batch, or its halves if the batch fails. Call `failed` if a single row fails."""
    try:
        work(rows)
    except Exception as error:
        if len(rows) == 1:
            failed(rows[0], error)
            return
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]):
            in_halves(half, work, failed)


class _Call:
    """State of one call of `translate`: its rows and the retries of failed batches."""

    decode: Submit

    def __init__(self, translator: Translator, sources: Sequence[Pieces]) -> None:
        self._translator, self._sources = translator, sources
        self._candidates = translator.options.candidates
        self._scores_again = bool(translator.options.against_repetition())
        empty: tuple[Any, ...] = (None,) * len(SCHEMA)
        self._rows = [empty] * (len(sources) * self._candidates)
        self._found = dict[int, Hypothesis]()  # hypotheses to score again, by row
        self._counters = Counters(sentences=len(sources))

    def reject(self, row: int, reason: str) -> None:
        for candidate in range(self._candidates):
            self._rows[row * self._candidates + candidate] = (None, None, None, reason)

    def run(self, batches: list[list[int]], parallel: int, hints: RetryHints | None) -> None:
        waiting: deque[tuple[list[int], Callable[[], list[Ranked]]]] = deque()
        for rows in batches:
            if len(waiting) == parallel:
                self._collect(*waiting.popleft())
            if hints is not None:
                hints.under_way(rows)
            waiting.append((rows, self._submit(rows)))
        while waiting:
            self._collect(*waiting.popleft())

    def _submit(self, rows: Sequence[int]) -> Callable[[], list[Ranked]]:
        self._counters.batches += 1
        return self.decode([self._sources[row] for row in rows], self._candidates)

    def _collect(self, rows: Sequence[int], wait: Callable[[], list[Ranked]]) -> None:
        """Store the translations of a batch. After an error, retry the batch, then its halves."""
        try:
            self._store(rows, wait())
        except Exception:
            in_halves(rows, self._again, self._failed)

    def _again(self, rows: Sequence[int]) -> None:
        self._counters.retries += 1
        self._store(rows, self._submit(rows)())

    def _failed(self, row: int, error: Exception) -> None:
        """Reject a sentence, or raise an error if the engine fails on every input."""
        self._translator._engine.check()
        reason = f"engine failed: {type(error).__name__}: {one_line(error)}"
        self.reject(row, reason.removesuffix(": "))

    def _store(self, rows: Sequence[int], hypotheses: list[Ranked]) -> None:
        for row, best_first in zip(rows, hypotheses, strict=True):
            self.reject(row, "the model has no further translation")
            for at, hypothesis in enumerate(best_first, row * self._candidates):
                self._rows[at] = self._judged(at, hypothesis)
                if hypothesis.ended and self._scores_again:
                    self._found[at] = hypothesis

    def _judged(self, at: int, hypothesis: Hypothesis) -> tuple[Any, ...]:
        """Return row `at` of the result, which has either a translation or a reason."""
        translator = self._translator
        pieces = [piece for piece in hypothesis.pieces if piece not in translator._special]
        text = translator._subwords.decode(pieces).strip()
        if not hypothesis.ended:
            most = length_class(len(self._sources[at // self._candidates]))
            reason = (
                f"translation does not end within {hypothesis.subwords} subwords, the limit for "
                f"sources of up to {most}"
            )
        elif not text:
            reason = "empty translation"
        elif control := find_control(text):
            reason = f"{control} in translation"
        elif not hypothesis.score <= 0:  # NaN, or log p > 0
            reason = f"translation score is {hypothesis.score}"
        else:
            return text, hypothesis.score, hypothesis.subwords, None
        return None, None, None, reason

    def score_again(self) -> None:
        """Score translations again without the options against repetition, which change p."""
        given = [self._sources[at // self._candidates] for at in self._found]
        pieces = [of.pieces for of in self._found.values()]
        own = self._translator._score(given, pieces, max(map(len, pieces), default=0))
        for (at, hypothesis), score in zip(self._found.items(), own.tolist(), strict=True):
            self._rows[at] = self._judged(at, hypothesis._replace(score=score))

    def finish(self, seconds: float) -> tuple[pa.RecordBatch, Counters]:
        columns = [
            pa.array([row[at] for row in self._rows], field.type) for at, field in enumerate(SCHEMA)
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        self._counters.rejects = len(rows) - rows["reason"].null_count
        self._counters.tokens = pc.sum(rows["translation_subwords"]).as_py() or 0
        self._counters.seconds = seconds
        return rows, self._counters
