"""Decoding with CTranslate2, the fast engine."""

import ctypes
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import ctranslate2

from paraloom.models.errors import UserError
from paraloom.models.nmt import gpu
from paraloom.models.nmt.engines.base import (
    Engine,
    Hypothesis,
    Pieces,
    Ranked,
    Submit,
    longest_target,
)
from paraloom.models.nmt.families.base import NmtModel
from paraloom.models.nmt.options import NmtOptions, Precision

_CUBLAS = "libcublas.so.12"  # what CTranslate2's wheel is linked with
_SEEDING = threading.Lock()  # CTranslate2 has one seed for the whole process


class CTranslate2Engine(Engine):
    """A model loaded in CTranslate2.

    On a machine with several GPUs, each has a copy of the model and decodes a batch. On a CPU, one
    thread decodes a batch, and as many batches are decoded in parallel as there are threads. The
    values do not depend on the number of threads, and small batches keep all cores busy until the
    end.
    """

    def __init__(self, nmt: NmtModel, options: NmtOptions, threads: int) -> None:
        """Load the model; see `build_engine` for the errors."""
        _allow_avx512()
        gpus = _gpus(options)
        self.device = "cuda" if gpus else "cpu"
        self.compute_type = _precision(options, gpus, nmt.family)
        self._model = model = nmt.converted()
        self.converted = model.digest
        self._remedy = "convert the original anew" if model.path == nmt.path else "delete it"
        self._layout = nmt.layout
        # On a CPU, a batch and the weights must fit a core's cache (measured).
        self.batch_tokens = 8192 if gpus else 48 if self.compute_type == "int8" else 256
        self.parallel = len(gpus) or threads
        tags = len(self._layout.target_prefix)
        # What the decoder starts with is no part of a hypothesis, but a tag after it is.
        self._forced = tags if self._layout.decoder_start else 0
        self.max_source_subwords = model.source_positions - max(len(self._layout.source(())), 1)
        self.max_target_subwords = model.target_positions - tags - 1
        longest = longest_target(options, model.target_positions - tags)
        self._decoding: dict[str, Any] = {
            "asynchronous": True,
            "length_penalty": 1,
            "max_input_length": 0,  # no truncation: the caller rejects long sources
            "min_decoding_length": nmt.shortest,
            "max_decoding_length": longest + self._forced,
            "return_scores": True,
            "return_end_token": True,
        }
        self._options = options
        self._loading = {"device": self.device, "compute_type": self.compute_type}
        self._translator = self._load(gpus or 0, 1 if gpus else threads)
        self._idle: SimpleQueue[int] = SimpleQueue()
        for device in gpus or [0]:
            self._idle.put(device)

    def _load(self, devices: int | list[int], threads: int) -> ctranslate2.Translator:
        try:
            return ctranslate2.Translator(
                str(self._model.path),
                **self._loading,
                device_index=devices,
                inter_threads=threads,
                intra_threads=1,
                max_queued_batches=-1,
            )
        except (RuntimeError, ValueError, LookupError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{self._model.path}: CTranslate2 cannot load it ({reason}); {self._remedy}"
            ) from error

    def submit(
        self, batch: Sequence[Pieces], num_hypotheses: int = 1
    ) -> Callable[[], list[Ranked]]:
        """Queue a batch; see `Engine.submit`."""
        # A patience of 1 is fairseq's: stop when `beam` hypotheses have ended.
        search = {"beam_size": self._options.beam, "patience": 1}
        return self._submit(self._translator, batch, num_hypotheses, search)

    @contextmanager
    def sampler(self, seed: int, largest: int) -> Iterator[Submit]:
        """See `Engine.sampler`. A call draws with one thread of a translator of its own.

        Otherwise nothing can be repeated: CTranslate2 seeds the generator of a thread when the
        thread first draws, and never again (its threads also outlive `unload_model`), so a
        translator that has drawn cannot be used again with another seed. Loading 500 MB takes
        0.3 s. The last bits of a score depend on the number of threads that work on a batch.
        """
        assert self._options.sampling
        how = {  # a beam above 1 crashes the process when it samples
            "beam_size": 1,
            "sampling_topk": self._options.sampling.top_k,
            "sampling_temperature": self._options.sampling.temperature,
        }
        seeded = False

        def draw(batch: Sequence[Pieces], num_hypotheses: int) -> Callable[[], list[Ranked]]:
            wait = self._submit(translator, batch, num_hypotheses, how)
            return lambda: [sorted(drawn, key=lambda each: -each.score) for drawn in wait()]

        def submit(batch: Sequence[Pieces], num_hypotheses: int) -> Callable[[], list[Ranked]]:
            """Draw; the first batch is drawn before another call may set its seed."""
            nonlocal seeded
            if seeded:
                return draw(batch, num_hypotheses)
            with _SEEDING:
                ctranslate2.set_random_seed(seed)
                if self.device == "cuda":
                    # A GPU has a generator for each sentence, and seeds all anew for a larger
                    # batch.
                    draw([["▁a"]] * largest, num_hypotheses)()
                found = draw(batch, num_hypotheses)()
            seeded = True
            return lambda: found

        device = self._idle.get()
        try:
            translator = self._load(device, 1)
            yield submit
        finally:
            self._idle.put(device)

    def score(self, sources: Sequence[Pieces], targets: Sequence[Pieces]) -> list[float]:
        """See `Engine.score`."""
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
        translator: ctranslate2.Translator,
        batch: Sequence[Pieces],
        num_hypotheses: int,
        how: dict[str, Any],
    ) -> Callable[[], list[Ranked]]:
        prefix = list(self._layout.target_prefix)
        results = translator.translate_batch(
            [self._layout.source(pieces) for pieces in batch],
            [prefix] * len(batch) if prefix else None,
            num_hypotheses=num_hypotheses,
            **self._decoding,
            **how,
        )

        def wait() -> list[Ranked]:
            found = [pending.result() for pending in results]
            return [[*map(self._hypothesis, each.hypotheses, each.scores)] for each in found]

        return wait

    def _hypothesis(self, pieces: list[str], score: float) -> Hypothesis:
        """A hypothesis without the tag, which counts in CTranslate2's length, and 0 in its sum."""
        made = pieces[self._forced :]
        if self._forced and made:
            score *= len(pieces) / len(made)
        ended = bool(made) and made[-1] == "</s>"
        return Hypothesis(made[:-1] if ended else made, score, len(made), ended)


def _precision(options: NmtOptions, gpus: Sequence[int], family: str) -> Precision:
    """The number type to load with."""
    wanted = options.compute_type
    gpu.check_type(options, gpus)
    if wanted == "int8" and gpus:
        return "int8_float16"  # float32 activations would not use the GPU's matrix units
    if wanted != "auto":
        return wanted
    supported = [ctranslate2.get_supported_compute_types("cuda", device) for device in gpus]
    choices: tuple[Precision, ...] = ("float16", "bfloat16")
    for choice in reversed(choices) if family == "T5" else choices:
        if gpus and all(choice in types for types in supported):
            return choice
    return "float32"


def _allow_avx512() -> None:
    """Let CTranslate2 use AVX-512 on CPUs with VNNI.

    Its default is AVX2, because older CPUs lower their clock rate for AVX-512.
    """
    try:
        flags = Path("/proc/cpuinfo").read_text().split("flags", 2)[1].split("\n")[0].split()
    except (OSError, IndexError):  # not Linux on x86
        return
    if {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} <= set(flags):
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


def _gpus(options: NmtOptions) -> list[int]:
    """The GPUs to decode on; none: on a CPU."""
    gpus = gpu.chosen(options, gpu.devices())
    if not gpus or _load_cublas():
        return gpus
    if gpu.named(options):
        raise UserError(
            f"nmt.device: CTranslate2 finds no {_CUBLAS}; pip install nvidia-cublas-cu12, "
            "or choose engine fairseq or device cpu"
        )
    return []


def _load_cublas() -> bool:
    """Load CUDA 12's cuBLAS from the system or from its wheel, so that CTranslate2 finds it."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or []) if spec else []
    wheel = [Path(root) / "cublas" / "lib" for root in roots]
    for candidate in (_CUBLAS, *(str(path / _CUBLAS) for path in wheel)):
        try:
            if candidate != _CUBLAS:
                lt = Path(candidate).with_name("libcublasLt.so.12")
                ctypes.CDLL(str(lt), ctypes.RTLD_GLOBAL)
            ctypes.CDLL(candidate, ctypes.RTLD_GLOBAL)
            return True
        except OSError:
            continue
    return False
