"""What decodes a batch of subwords, and how one is chosen."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from models.errors import UserError

if TYPE_CHECKING:
    from models.nmt.model_folder import ModelFolder
    from models.nmt.options import NmtOptions

Pieces = Sequence[str]


class Hypothesis(NamedTuple):
    """The best translation of a sentence."""

    pieces: list[str]
    """Target subwords, without the end of sentence."""
    score: float
    """log p(translation | source) / subwords, natural logarithm."""
    subwords: int
    """Target subwords, end of sentence included."""
    ended: bool
    """False where decoding was cut at the longest length: no translation then."""


class Engine(Protocol):
    """A loaded model. `submit` may be called from several threads at once."""

    device: str
    """Where it decodes: cpu or cuda."""
    batch_tokens: int
    """Source subwords in a batch, padding included, that suit the engine and the device."""
    max_source_subwords: int
    """The longest source that the model's positions hold, without the end of sentence."""
    parallel: int
    """Batches that it works on at once."""

    def submit(self, batch: Sequence[Pieces]) -> Callable[[], list[Hypothesis]]:
        """Begin to translate a batch; the function given back waits for it.

        An error of the engine, such as too little memory, is raised by that function.
        """
        ...


def build_engine(folder: ModelFolder, options: NmtOptions, threads: int | None = None) -> Engine:
    """Load the model in the engine that `options` name, on `threads` CPU threads (null: all cores).

    Raises:
        UserError: the model cannot be loaded, or the device cannot do what is asked.
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
    probe(engine, folder, options)
    return engine


def probe(engine: Engine, folder: ModelFolder, options: NmtOptions) -> None:
    """Translate one subword, to tell an engine that does not work from a sentence that fails.

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


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def longest_target(options: NmtOptions, positions: int) -> int:
    """Target subwords, end of sentence included, at which every engine stops decoding."""
    return min(2 * options.max_source_subwords, positions)
