"""Translation of sentences, with scores."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from models.cpu import cores
from models.errors import UserError
from models.nmt.engine import Engine, Hypothesis, Pieces
from models.nmt.model_folder import ModelFolder
from models.nmt.options import NmtOptions

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
    batch at a time.

    >>> translator = Translator("models/cs-en", NmtOptions(beam=5), threads=2)
    >>> rows, counters = translator.translate(["Jan má rád sýr.", ""])
    >>> rows["reason"].to_pylist()
    [None, 'empty source']
    """

    def __init__(
        self, folder: Path | str, options: NmtOptions | None = None, *, threads: int | None = None
    ) -> None:
        """Load the model; `threads` are the CPU cores to use, all by default.

        Raises:
            UserError: a file is missing, damaged or unsafe, or the device does not support the
                options.
        """
        self.options = options or NmtOptions()
        self._folder = ModelFolder(Path(folder))
        self._subwords = self._folder.sentencepiece()
        self._engine = build_engine(self._folder, self.options, threads)
        self._limit = min(self.options.max_source_subwords, self._engine.max_source_subwords)

    @property
    def device(self) -> str:
        """The engine's device: cpu or cuda."""
        return self._engine.device

    def translate(
        self,
        sentences: pa.StringArray | pa.ChunkedArray | Sequence[str | None],
        hints: RetryHints | None = None,
    ) -> tuple[pa.RecordBatch, Counters]:
        """Translate sentences; row i of the result belongs to sentence i.

        Args:
            hints: rows that crashed earlier attempts; other rows are batched as without hints.

        Returns:
            `translation` (null where rejected), `translation_score` (log p(translation | source)
            per target subword, natural logarithm), `translation_subwords` (end of sentence
            included) and `reason` (null unless rejected); and counters.

        Raises:
            UserError: the engine has stopped working.
        """
        started = time.monotonic()
        texts = sentences if isinstance(sentences, Sequence) else sentences.to_pylist()
        call = _Call(self, len(texts))
        sources = self._subwords.encode([text or "" for text in texts], out_type=str)
        accepted = []
        for row, source in enumerate(sources):
            if not source:
                call.reasons[row] = "empty source"
            elif len(source) > self._limit:
                call.reasons[row] = f"source of more than {self._limit} subwords"
            else:
                accepted.append(row)
        budget = self.options.batch_tokens or self._engine.batch_tokens
        batches = list(batches_by_tokens(accepted, sources, budget))
        if hints is None:
            call.work(batches, sources, len(batches))
        else:
            for row in hints.poison:
                call.reasons[row] = "the worker process died of it"
            done = {row for group in hints.isolated for row in group}.union(hints.poison)
            rest = [[row for row in batch if row not in done] for batch in batches]
            call.work(hints.isolated, sources, 1, hints.under_way)
            call.work([b for b in rest if b], sources, self._engine.parallel, hints.under_way)
            hints.under_way([])
        return call.finish(time.monotonic() - started)


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

    def __init__(self, translator: Translator, rows: int) -> None:
        self._translator = translator
        self._texts: list[str | None] = [None] * rows
        self._scores: list[float | None] = [None] * rows
        self._lengths: list[int | None] = [None] * rows
        self.reasons: list[str | None] = [None] * rows
        self._counters = Counters(sentences=rows)

    def work(
        self,
        batches: Sequence[Sequence[int]],
        sources: Sequence[Pieces],
        parallel: int,
        report: Callable[[Sequence[Sequence[int]]], None] = lambda groups: None,
    ) -> None:
        """Translate batches of rows, `parallel` at once; `report` gets the rows in the engine."""
        waiting: deque[tuple[list[int], list[Pieces], Callable[[], list[Hypothesis]]]] = deque()
        for batch in batches:
            if len(waiting) == parallel:
                self.collect(*waiting.popleft())
            report([*(rows for rows, *_ in waiting), batch])
            pieces = [sources[row] for row in batch]
            waiting.append((list(batch), pieces, self.submit(pieces)))
        while waiting:
            self.collect(*waiting.popleft())

    def submit(self, sources: list[Pieces]) -> Callable[[], list[Hypothesis]]:
        """Submit a batch to the engine; errors are raised when the result is collected."""
        self._counters.batches += 1
        try:
            return self._translator._engine.submit(sources)
        except Exception as error:
            failure: Future[list[Hypothesis]] = Future()
            failure.set_exception(error)
            return failure.result

    def collect(
        self, rows: list[int], sources: list[Pieces], wait: Callable[[], list[Hypothesis]]
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
        for row, hypothesis in zip(rows, hypotheses, strict=True):
            self._write(row, hypothesis)

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
            check_engine(translator._engine, translator._folder, translator.options)
            self.reasons[rows[0]] = f"engine failed: {one_line(error)}"

    def _write(self, row: int, hypothesis: Hypothesis) -> None:
        pieces = [piece for piece in hypothesis.pieces if piece not in _SPECIAL]
        text = self._translator._subwords.decode(pieces).strip()
        if not hypothesis.ended:
            self.reasons[row] = f"translation does not end within {hypothesis.subwords} subwords"
        elif not text:
            self.reasons[row] = "empty translation"
        elif not hypothesis.score <= 0:  # NaN, or the logarithm of more than 1
            self.reasons[row] = f"translation score is {hypothesis.score}"
        else:
            self._texts[row] = text
            self._scores[row] = hypothesis.score
            self._lengths[row] = hypothesis.subwords
            self._counters.tokens += hypothesis.subwords

    def finish(self, seconds: float) -> tuple[pa.RecordBatch, Counters]:
        """The rows and the counters."""
        self._counters.rejects = sum(reason is not None for reason in self.reasons)
        self._counters.seconds = seconds
        columns = (self._texts, self._scores, self._lengths, self.reasons)
        rows = pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), SCHEMA)
        return rows, self._counters


def build_engine(folder: ModelFolder, options: NmtOptions, threads: int | None = None) -> Engine:
    """Load the model in the configured engine, on `threads` CPU threads (None: all cores).

    Raises:
        UserError: the model cannot be loaded, or the device does not support the options.
    """
    threads = threads or cores()
    engine: Engine
    try:
        if options.engine == "ctranslate2":
            from models.nmt.ctranslate2_engine import CTranslate2Engine

            engine = CTranslate2Engine(folder, options, threads)
        else:
            from models.nmt.fairseq_engine import FairseqEngine

            engine = FairseqEngine(folder, options, threads)
    except ImportError as error:
        raise UserError(f"engine {options.engine}: not installed ({error})") from error
    check_engine(engine, folder, options)
    return engine


def check_engine(engine: Engine, folder: ModelFolder, options: NmtOptions) -> None:
    """Translate one subword, to distinguish a broken engine from a sentence that fails.

    Raises:
        UserError: the engine does not work.
    """
    try:
        engine.submit([["▁a"]])()
    except Exception as error:
        raise UserError(
            f"{folder.path}: engine {options.engine} does not work ({one_line(error)})"
        ) from error


def one_line(error: BaseException) -> str:
    """An error's type and message on one line of bounded length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")
