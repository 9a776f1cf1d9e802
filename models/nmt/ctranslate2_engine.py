"""Decoding with CTranslate2, the fast engine."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import UserError
from models.nmt.convert import convert_once
from models.nmt.engine import Hypothesis, Pieces, longest_target

if TYPE_CHECKING:
    from models.nmt.model_folder import ModelFolder
    from models.nmt.options import NmtOptions

_CUBLAS = "libcublas.so.12"  # what CTranslate2's wheel is linked with


class CTranslate2Engine:
    """A model loaded in CTranslate2.

    On a CPU, one thread decodes a batch, and as many batches are decoded in parallel as there are
    threads. The values do not depend on the number of threads, and small batches keep all cores
    busy until the end.
    """

    def __init__(self, folder: ModelFolder, options: NmtOptions, threads: int) -> None:
        """Load the model; see `build_engine` for the errors."""
        _allow_avx512()
        import ctranslate2

        cuda = _use_cuda(options)
        self.device = "cuda" if cuda else "cpu"
        if options.compute_type == "float16" and not cuda:
            raise UserError(
                "nmt.compute_type: float16 needs a GPU, and there is none; choose float32 or int8"
            )
        compute_type: str = options.compute_type
        if cuda and compute_type == "int8":
            compute_type = (
                "int8_float16"  # float32 activations would not use the GPU's matrix units
            )
        model = convert_once(folder)
        # On a CPU, a batch and the weights must fit a core's cache (measured).
        self.batch_tokens = 8192 if cuda else 48 if compute_type == "int8" else 256
        self.parallel = 1 if cuda else threads
        self.max_source_subwords = model.source_positions - 1
        self._options = options
        self._longest = longest_target(options, model.target_positions)
        try:
            self._translator = ctranslate2.Translator(
                str(model.path),
                device=self.device,
                compute_type=compute_type,
                inter_threads=self.parallel,
                intra_threads=1,
                max_queued_batches=-1,
            )
        except (RuntimeError, ValueError) as error:
            raise UserError(f"{model.path}: CTranslate2 cannot load it ({error})") from error

    def submit(self, batch: Sequence[Pieces]) -> Callable[[], list[Hypothesis]]:
        """Queue a batch; see `Engine.submit`."""
        results = self._translator.translate_batch(
            [list(pieces) for pieces in batch],
            asynchronous=True,
            beam_size=self._options.beam,
            patience=1,  # like fairseq: stop when `beam` hypotheses have ended
            length_penalty=1,
            max_input_length=0,  # no truncation: the caller rejects long sources
            max_decoding_length=self._longest,
            return_scores=True,
            return_end_token=True,
        )

        def wait() -> list[Hypothesis]:
            hypotheses = []
            for pending in results:
                result = pending.result()
                pieces, score = result.hypotheses[0], result.scores[0]
                ended = bool(pieces) and pieces[-1] == "</s>"
                hypotheses.append(
                    Hypothesis(pieces[:-1] if ended else pieces, score, len(pieces), ended)
                )
            return hypotheses

        return wait


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


def _use_cuda(options: NmtOptions) -> bool:
    """Whether to decode on a GPU.

    Raises:
        UserError: `device` is cuda, but there is no GPU or its library is missing.
    """
    import ctranslate2

    if options.device == "cpu":
        return False
    found = ctranslate2.get_cuda_device_count() > 0
    usable = found and _load_cublas()
    if options.device == "cuda" and not found:
        raise UserError("nmt.device: there is no CUDA device; choose cpu or auto")
    if options.device == "cuda" and not usable:
        raise UserError(
            f"nmt.device: CTranslate2 finds no {_CUBLAS}; pip install nvidia-cublas-cu12, "
            "or choose engine fairseq or device cpu"
        )
    return usable


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
