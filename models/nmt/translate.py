"""Translation of sentences, with scores."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paraloom.models.hub import fetch
from paraloom.models.nmt.engines.base import Engine, Hypothesis, Pieces, Ranked, Sampler, Sampling
from paraloom.models.nmt.engines.build import build_engine, check_engine, one_line
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.registry import open_model
from paraloom.models.nmt.options import NmtOptions, Precision
from paraloom.models.text.controls import find_control

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
    """Counts of one call of `Translator.translate`."""

    sentences: int = 0
    """Input sentences."""
    tokens: int = 0
    """Target subwords, ends of sentence included."""
    batches: int = 0
    """Batches that the engine received, retries included."""
    seconds: float = 0.0
    """Wall-clock time."""
    rejects: int = 0
    """Sentences without a translation."""
    retries: int = 0
    """Batches retried after an error: halves and single sentences."""


class RetryHints(Protocol):
    """The record of earlier attempts at the same sentences, which ended with a crash."""

    @property
    def isolated(self) -> Sequence[Sequence[int]]:
        """Groups of rows that crashed the process; each is translated by itself."""

    @property
    def poison(self) -> Sequence[int]:
        """Rows that crash the process even by themselves; they are rejected."""

    def under_way(self, groups: Sequence[Sequence[int]]) -> None:
        """Record the rows that the engine gets next; called before it gets them."""


class Translator:
    """A model that translates; `translate` may be called from several threads at once.

    Threads share only the engine: CTranslate2 has one queue for all batches, fairseq decodes one
    batch at a time. Calls that sample have a GPU each; on a CPU, and in torch, they take turns.

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
    ) -> None:
        """Load the model.

        Args:
            model: a model folder, or a name on Hugging Face's Hub with an optional `@revision`.
            languages: for models of several languages.
            threads: the CPU cores to use, all by default.
        """
        self.options = options or NmtOptions()
        self._model = open_model(fetch(str(model)), languages)
        self._subwords = self._model.subwords()
        self._special = _SPECIAL.union(self._model.layout.target_prefix)
        self._engine = build_engine(self._model, self.options, threads)
        self._limit = min(self.options.max_source_subwords, self._engine.max_source_subwords)

    @property
    def device(self) -> str:
        """The engine's device: cpu or cuda."""
        return self._engine.device

    @property
    def compute_type(self) -> Precision:
        """The number type of the engine's weights."""
        return self._engine.compute_type

    @property
    def converted(self) -> str | None:
        """SHA-256 of the files that the engine loaded, if the model was converted for it."""
        return self._engine.converted

    def translate(
        self,
        sentences: pa.StringArray | pa.ChunkedArray | Sequence[str | None],
        hints: RetryHints | None = None,
        *,
        seed: int = 1,
    ) -> tuple[pa.RecordBatch, Counters]:
        """Translate sentences; row i of the result belongs to sentence i.

        With `candidates: N`, every sentence has N rows, the best translation first.

        Args:
            hints: rows that crashed earlier attempts; other rows are batched as without hints.
            seed: of `sampling`; the same sentences and seed give the same translations.

        Returns:
            `translation` (null where rejected), `translation_score` (log p(translation | source)
            per target subword, natural logarithm), `translation_subwords` (end of sentence
            included) and `reason` (null unless rejected); and counters.
        """
        started = time.monotonic()
        texts = sentences if isinstance(sentences, Sequence) else sentences.to_pylist()
        sources = self._subwords.encode_source([text or "" for text in texts])
        call, accepted = _Call(self, len(texts)), []
        for row, source in enumerate(sources):
            if not source:
                call.reject(row, "empty source")
            elif len(source) > self._limit:
                call.reject(row, f"source of more than {self._limit} subwords")
            else:
                accepted.append(row)
        budget = self.options.batch_tokens or self._engine.batch_tokens
        batches = list(batches_by_tokens(accepted, sources, budget))
        with self._decoder(seed, batches) as call.decoder:
            # When translations are drawn, the order of batches decides.
            parallel = 1 if self.options.sampling else self._engine.parallel
            if hints is None:
                call.work(batches, sources, parallel if self.options.sampling else len(batches))
            else:
                for row in hints.poison:
                    call.reject(row, "the worker process died of it")
                done = {row for group in hints.isolated for row in group}.union(hints.poison)
                rest = [[row for row in batch if row not in done] for batch in batches]
                groups = [*hints.isolated, *filter(None, rest)]
                first = len(hints.isolated)
                if self.options.sampling:
                    groups.sort(key=lambda group: (-len(sources[group[0]]), group[0]))
                call.work(groups[:first], sources, 1, hints.under_way)
                call.work(groups[first:], sources, parallel, hints.under_way)
                hints.under_way([])
        return call.finish(time.monotonic() - started)

    def _decoder(
        self, seed: int, batches: list[list[int]]
    ) -> AbstractContextManager[Engine | Sampler]:
        """The engine with its beam, or a sampler in the first state of the seed."""
        options = self.options.sampling
        if options is None:
            return nullcontext(self._engine)
        drawing = Sampling(top_k=options.top_k, temperature=options.temperature, seed=seed)
        return self._engine.sampler(drawing, max(map(len, batches), default=0))

    def score(
        self, sources: Sequence[str | None], references: Sequence[str | None]
    ) -> NDArray[np.float32]:
        """log p(reference | source) per target subword, end of sentence included: float32 [n].

        Natural logarithm, comparable to `translation_score`. NaN where a side is empty or too long,
        or the engine fails on the pair.
        """
        found = np.full(len(sources), np.nan, np.float32)
        given = self._subwords.encode_source([text or "" for text in sources])
        wanted = self._subwords.encode_target([text or "" for text in references])
        longest = min(2 * self.options.max_source_subwords, self._engine.max_target_subwords)
        rows = [
            row
            for row, (source, target) in enumerate(zip(given, wanted, strict=True))
            if 0 < len(source) <= self._limit and 0 < len(target) <= longest
        ]
        budget = self.options.batch_tokens or self._engine.batch_tokens
        longer = [max(pair, key=len) for pair in zip(given, wanted, strict=True)]
        batches = list(batches_by_tokens(rows, longer, budget))

        def score(batch: list[int]) -> None:
            """Score a batch; if the engine fails, its halves."""
            try:
                found[batch] = self._engine.score(
                    [given[row] for row in batch], [wanted[row] for row in batch]
                )
            except Exception:
                if len(batch) == 1:
                    check_engine(self._engine, self._model, self.options)
                    return
                middle = len(batch) // 2
                score(batch[:middle])
                score(batch[middle:])

        with ThreadPoolExecutor(self._engine.parallel) as workers:
            list(workers.map(score, batches))
        return found


def batches_by_tokens(
    rows: Sequence[int], sources: Sequence[Pieces], budget: int
) -> Iterator[list[int]]:
    """Group rows into batches of similar length: rows × longest source is at most `budget`.

    Long sources come first: at the end, when some cores are idle, batches are short. A source
    longer than the budget is a batch of its own. Rows of equal length keep their order.

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


class _Call:
    """The state of one call of `translate`: the rows, and the retries of failed batches."""

    decoder: Engine | Sampler

    def __init__(self, translator: Translator, rows: int) -> None:
        self._translator = translator
        self._candidates = translator.options.candidates
        results = rows * self._candidates
        self._texts: list[str | None] = [None] * results
        self._scores: list[float | None] = [None] * results
        self._lengths: list[int | None] = [None] * results
        self._reasons: list[str | None] = [None] * results
        self._counters = Counters(sentences=rows)

    def reject(self, row: int, reason: str) -> None:
        """A sentence without a translation."""
        first = row * self._candidates
        self._reasons[first : first + self._candidates] = [reason] * self._candidates

    def work(
        self,
        batches: Sequence[Sequence[int]],
        sources: Sequence[Pieces],
        parallel: int,
        report: Callable[[Sequence[Sequence[int]]], None] = lambda groups: None,
    ) -> None:
        """Translate batches of rows, `parallel` at once; `report` gets the rows in the engine."""
        waiting: deque[tuple[list[int], list[Pieces], Callable[[], list[Ranked]]]] = deque()
        for batch in batches:
            if len(waiting) == parallel:
                self.collect(*waiting.popleft())
            report([*(rows for rows, *_ in waiting), batch])
            pieces = [sources[row] for row in batch]
            waiting.append((list(batch), pieces, self.submit(pieces)))
        while waiting:
            self.collect(*waiting.popleft())

    def submit(self, sources: list[Pieces]) -> Callable[[], list[Ranked]]:
        """Submit a batch to the engine; errors are raised when the result is collected."""
        self._counters.batches += 1
        try:
            return self.decoder.submit(sources, self._candidates)
        except Exception as error:
            failure: Future[list[Ranked]] = Future()
            failure.set_exception(error)
            return failure.result

    def collect(
        self, rows: list[int], sources: list[Pieces], wait: Callable[[], list[Ranked]]
    ) -> None:
        """Store a batch's translations; if the engine fails, retry its halves recursively.

        A single sentence is retried once and then rejected. If the engine fails on every input, the
        call raises an error instead of rejecting the rest of the corpus.
        """
        try:
            hypotheses = wait()
        except Exception as error:
            self._retry(rows, sources, error)
            return
        for row, best_first in zip(rows, hypotheses, strict=True):
            self._write(row, best_first)

    def _retry(self, rows: list[int], sources: list[Pieces], error: Exception) -> None:
        if len(rows) > 1:
            middle = len(rows) // 2
            for part in (slice(middle), slice(middle, None)):
                self._counters.retries += 1
                self.collect(rows[part], sources[part], self.submit(sources[part]))
            return
        self._counters.retries += 1
        try:
            self._write(rows[0], self.submit(sources)()[0])
        except Exception as error:
            translator = self._translator
            check_engine(translator._engine, translator._model, translator.options)
            self.reject(rows[0], f"engine failed: {one_line(error)}")

    def _write(self, row: int, best_first: Ranked) -> None:
        self.reject(row, "the model has no further translation")
        for candidate, hypothesis in enumerate(best_first):
            self._write_one(row * self._candidates + candidate, hypothesis)

    def _write_one(self, row: int, hypothesis: Hypothesis) -> None:
        self._reasons[row] = None
        special = self._translator._special
        pieces = [piece for piece in hypothesis.pieces if piece not in special]
        text = self._translator._subwords.decode(pieces).strip()
        if not hypothesis.ended:
            self._reasons[row] = f"translation does not end within {hypothesis.subwords} subwords"
        elif not text:
            self._reasons[row] = "empty translation"
        elif control := find_control(text):
            self._reasons[row] = f"{control} in translation"
        elif not hypothesis.score <= 0:  # NaN, or the logarithm of more than 1
            self._reasons[row] = f"translation score is {hypothesis.score}"
        else:
            self._texts[row] = text
            self._scores[row] = hypothesis.score
            self._lengths[row] = hypothesis.subwords
            self._counters.tokens += hypothesis.subwords

    def finish(self, seconds: float) -> tuple[pa.RecordBatch, Counters]:
        """The rows and the counters."""
        self._counters.rejects = sum(reason is not None for reason in self._reasons)
        self._counters.seconds = seconds
        columns = (self._texts, self._scores, self._lengths, self._reasons)
        rows = pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), SCHEMA)
        return rows, self._counters
