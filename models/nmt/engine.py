"""Decoding with CTranslate2."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NamedTuple

from paraloom.models.cpu import allow_avx512, cores
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.nmt import gpu
from paraloom.models.nmt.families.base import NmtModel
from paraloom.models.nmt.options import NmtOptions

_SEEDING = threading.Lock()  # CTranslate2 has one seed per process

Pieces = Sequence[str]


class Hypothesis(NamedTuple):
    """A translation of a sentence."""

    pieces: list[str]  # target subwords, without tags and end of sentence
    score: float
    """Natural logarithm of p(translation | source), divided by `subwords`. Options against
    repetition change p."""
    subwords: int  # number of target subwords, including the end of sentence
    ended: bool  # False if decoding stopped at the length limit; such a hypothesis is unusable


Ranked = list[Hypothesis]  # translations of one source, best first

Submit = Callable[[Sequence[Pieces], int], Callable[[], list[Ranked]]]
"""Type of `Engine.submit` and of functions with the same interface."""


def length_class(subwords: int) -> int:
    """Round a source's number of subwords up to 16, 32, 64, 128, ….

    Sources in a batch must have the same class. The length limit of a translation then depends on
    its source, but not on the batch.

    >>> [length_class(n) for n in (1, 16, 17, 200)]
    [16, 16, 32, 256]
    """
    return max(1 << (subwords - 1).bit_length(), 16)


def longest_translation(subwords: int) -> int:
    """Return the maximum length of a translation, given the number of subwords in its source.

    >>> longest_translation(8), longest_translation(17)
    (78, 126)
    """
    return 3 * length_class(subwords) + 30


class Engine:
    """A model loaded in CTranslate2. Several threads may call `submit` and `score`.

    On a CPU, each thread decodes whole batches, so scores do not depend on the number of threads.

    Attributes:
        device: cpu or cuda.
        compute_type: number type of the loaded weights.
        gpus: number of GPUs in use; 0 on a CPU.
        parallel: number of batches that are decoded in parallel.
        batch_tokens: default number of source subwords per batch, including padding.
        batch_rows: maximum number of sentences per batch.
        max_source_subwords, max_target_subwords: maximum numbers of subwords in a text, without the
            end of sentence.
        converted: SHA-256 of the converted model's files.
    """

    def __init__(
        self,
        nmt: NmtModel,
        options: NmtOptions,
        threads: int | None = None,
        only: int | None = None,
    ) -> None:
        """Load the model on `threads` CPU cores, or on the GPU with the index `only`. By default,
        use all cores or all GPUs."""
        allow_avx512()
        threads, gpus = threads or cores(), gpu.chosen(options)
        self._nmt, self._options, self._layout = nmt, options, nmt.layout
        self.device = "cuda" if gpus else "cpu"
        self.compute_type = gpu.precision(options, gpus, nmt.family)
        self._model = model = nmt.converted()
        self.converted = model.digest
        # On a CPU, decoding is fastest if a batch and the weights fit into a core's cache.
        self.batch_tokens = 48 if self.compute_type == "int8" else 256
        self.batch_rows = gpu.MOST_ROWS
        if gpus:
            self.batch_tokens, self.batch_rows = gpu.batch_size(gpus, options, model.vocabulary)
            gpus = gpus if only is None else [only]
        self.parallel = gpu.STREAMS * len(gpus) or threads
        tags = len(self._layout.target_prefix)
        # Number of tags that a hypothesis contains. If the tag itself starts the decoder,
        # CTranslate2 omits the tag.
        self._forced = tags if self._layout.decoder_start else 0
        self.max_source_subwords = model.source_positions - max(len(self._layout.source(())), 1)
        self.max_target_subwords = model.target_positions - tags - 1
        self._longest = model.target_positions - tags
        self._decoding: dict[str, Any] = {
            "asynchronous": True,
            "length_penalty": 1,
            "max_input_length": 0,  # no truncation; the caller rejects long sources
            "min_decoding_length": nmt.shortest,
            "disable_unk": nmt.suppresses_unknown,
            "no_repeat_ngram_size": options.no_repeat_ngram,
            "repetition_penalty": options.repetition_penalty,
            "return_scores": True,
            "return_end_token": True,
        }
        self.gpus = len(gpus)
        self._translator = self._load(gpus or 0, gpu.STREAMS if gpus else threads)
        self._idle: SimpleQueue[int] = SimpleQueue()
        for device in gpus or [0]:
            self._idle.put(device)

    def _load(self, devices: int | list[int], threads: int) -> Any:
        import ctranslate2

        return ctranslate2.Translator(
            str(self._model.path),
            device=self.device,
            compute_type=self.compute_type,
            device_index=devices,
            inter_threads=threads,
            intra_threads=1,
            max_queued_batches=-1,
        )

    def check(self) -> None:
        """Translate one subword, and raise a UserError if the model is broken."""
        with in_one_line(f"{self._nmt.path}: CTranslate2 does not work"):
            (found,) = self.submit([["▁a"]])()
        if not any(math.isfinite(hypothesis.score) for hypothesis in found):
            raise UserError(
                f"{self._nmt.path}: the model gives no valid probabilities; download it again, or "
                "choose nmt.compute_type float32"
            )

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Queue a batch of sources of one `length_class`. Return a function that waits for the
        results. `num_hypotheses`, the maximum per source, must not exceed the beam size."""
        search = {"beam_size": self._options.beam, "patience": self._nmt.patience}
        return self._submit(self._translator, batch, num_hypotheses, search)

    @contextmanager
    def sampler(self, seed: int, largest: int) -> Iterator[Submit]:
        """Wait for an idle device, and yield a function like `submit` that samples translations.

        `largest` is the number of sentences in the largest batch. Samples depend on the batches'
        order. Each sampler loads a new translator, because a translator cannot be seeded twice.
        """
        import ctranslate2

        assert self._options.sampling
        how = {  # sampling with a beam above 1 crashes the process
            "beam_size": 1,
            "sampling_topk": self._options.sampling.top_k,
            "sampling_temperature": self._options.sampling.temperature,
        }
        seeded = False

        def draw(batch: Sequence[Pieces], num_hypotheses: int) -> list[Ranked]:
            found = self._submit(translator, batch, num_hypotheses, how)()
            return [sorted(drawn, key=lambda each: -each.score) for drawn in found]

        def submit(batch: Sequence[Pieces], num_hypotheses: int) -> Callable[[], list[Ranked]]:
            def wait() -> list[Ranked]:
                nonlocal seeded
                if seeded:
                    return draw(batch, num_hypotheses)
                with _SEEDING:  # no other sampler may change the seed before the first draw ends
                    ctranslate2.set_random_seed(seed)
                    if self.device == "cuda":
                        # A GPU has a random generator for each row of a batch. A batch larger than
                        # all earlier batches seeds all generators again. Draw the largest first.
                        draw([["▁a"]] * largest, num_hypotheses)
                    seeded = True
                    return draw(batch, num_hypotheses)

            return wait

        device = self._idle.get()
        try:
            translator = self._load(device, 1)
            yield submit
        finally:
            self._idle.put(device)

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """Return log p(target | source) of each pair, divided by the number of target subwords,
        including the end of sentence."""
        prefix = self._layout.target_prefix
        results = self._translator.score_batch(
            [self._layout.source(pieces) for pieces in sources],
            [[*prefix, *pieces] for pieces in targets],
            max_input_length=0,
        )
        lengths = [len(pieces) + 1 for pieces in targets]
        return [
            sum(result.log_probs[-length:]) / length
            for result, length in zip(results, lengths, strict=True)
        ]

    def _submit(
        self,
        translator: Any,  # ctranslate2.Translator
        batch: Sequence[Pieces],
        num_hypotheses: int,
        how: dict[str, Any],
    ) -> Callable[[], list[Ranked]]:
        prefix = list(self._layout.target_prefix)
        longest = min(longest_translation(max(map(len, batch))), self._longest)
        results = translator.translate_batch(
            [self._layout.source(pieces) for pieces in batch],
            [prefix] * len(batch) if prefix else None,
            num_hypotheses=num_hypotheses,
            max_decoding_length=longest + self._forced,
            **self._decoding,
            **how,
        )

        def wait() -> list[Ranked]:
            found = [pending.result() for pending in results]
            return [[*map(self._hypothesis, each.hypotheses, each.scores)] for each in found]

        return wait

    def _hypothesis(self, pieces: list[str], score: float) -> Hypothesis:
        """Create a hypothesis without the forced tag.

        CTranslate2's mean counts the tag with a log p of 0, so the score is rescaled.
        """
        made = pieces[self._forced :]
        if self._forced and made:
            score *= len(pieces) / len(made)
        ended = bool(made) and made[-1] == "</s>"
        return Hypothesis(made[:-1] if ended else made, score, len(made), ended)
