"""Interface of the decoding engines, and loading of the configured one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from models.cpu import cores
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
    """False if decoding stopped at the length limit; then it is not a translation."""


class Engine(Protocol):
    """A loaded model. `submit` may be called from several threads at once."""

    device: str
    """Device: cpu or cuda."""
    batch_tokens: int
    """Default number of source subwords in a batch, padding included."""
    max_source_subwords: int
    """Length of the longest source that the model can encode, without the end of sentence."""
    parallel: int
    """Number of batches decoded in parallel."""

    def submit(self, batch: Sequence[Pieces]) -> Callable[[], list[Hypothesis]]:
        """Start to translate a batch; return a function that waits for the hypotheses.

        That function raises the engine's errors, such as too little memory.
        """
        ...


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


def longest_target(options: NmtOptions, positions: int) -> int:
    """Length limit of translations in subwords, end of sentence included, for every engine."""
    return min(2 * options.max_source_subwords, positions)
