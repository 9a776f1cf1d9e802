"""The GPUs of this machine, and the number type of a loaded model."""

import ctypes
import importlib.util
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.nmt.options import NmtOptions, Precision

_CUBLAS = "libcublas.so.12"  # CTranslate2's wheel needs this library
STREAMS = 8  # number of batches that a GPU decodes in parallel
MOST_ROWS = 1000  # maximum sentences per batch; CTranslate2 warns about larger batches


def batch_size(gpus: Sequence[int], options: NmtOptions, vocabulary: int) -> tuple[int, int]:
    """Return the maximum number of source subwords and the maximum number of sentences per batch.

    With 16-bit numbers, scores depend slightly on the batch. To give the same scores in each run,
    the sizes do not depend on the number of GPUs or on free memory.
    """
    total = min(map(memory, gpus))
    hypotheses = options.candidates if options.sampling else options.beam
    logits = 6 * vocabulary * hypotheses  # bytes per sentence; each logit needs 2 + 4 bytes
    rows = total // (2 * STREAMS * logits)
    tokens = 256 * (total >> 30) * 12 // max(hypotheses, 12)
    return min(max(tokens, 1024), 32_768), min(max(rows, 8), MOST_ROWS)


def memory(device: int) -> int:
    """Return the memory of a GPU in bytes."""
    driver, handle, size = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
    failed = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(handle), device)
    if failed or driver.cuDeviceTotalMem_v2(ctypes.byref(size), handle):
        raise UserError(f"CUDA's driver does not report GPU {device}; choose nmt.device cpu")
    return size.value


def devices() -> list[int]:
    """Return the indices of the GPUs that this process may use (`CUDA_VISIBLE_DEVICES`)."""
    import ctranslate2

    return list(range(ctranslate2.get_cuda_device_count()))


def required(accelerator: str | None) -> bool:
    """Return whether a resource hint of Beam asks for GPUs.

    Raise a UserError if the hint asks for GPUs and this machine has no GPU.
    """
    asked = accelerator is not None and "nvidia" in accelerator
    if asked and not devices():
        raise UserError(
            f"accelerator: {accelerator}: this worker finds no CUDA device; add "
            "install-nvidia-driver to the hint, use the image for GPUs, or set accelerator to null"
        )
    return asked


def chosen(options: NmtOptions) -> list[int]:
    """Return the indices of the GPUs to decode on. An empty list means the CPU."""
    found = [] if options.device == "cpu" else devices()
    if found and load_cublas():
        return found
    if options.device == "cuda":
        lacking = f"{_CUBLAS} (pip install nvidia-cublas-cu12)" if found else "a CUDA device"
        raise UserError(f"nmt.device: cuda needs {lacking}; without it, choose cpu or auto")
    return []


def precision(options: NmtOptions, gpus: Sequence[int], family: str) -> Precision:
    """Return the number type for loading a model."""
    import ctranslate2

    wanted = options.compute_type
    if not gpus and wanted in ("float16", "bfloat16"):
        raise UserError(
            f"nmt.compute_type: {wanted} needs a GPU, and there is none; choose float32 or int8"
        )
    if not gpus:
        return "float32" if wanted == "auto" else wanted
    types: list[Precision] = ["float16", "bfloat16", "float32"]
    if wanted == "int8":  # int8 is for the weights; 16-bit activations use tensor cores
        types = ["int8_float16", "int8_bfloat16", "int8_float32"]
    elif wanted != "auto":
        return wanted
    if family in ("MADLAD", "T5", "mT5"):  # their values exceed the range of float16
        del types[0]
    supported = [ctranslate2.get_supported_compute_types("cuda", device) for device in gpus]
    return next((of for of in types if all(of in each for each in supported)), types[-1])


def load_cublas() -> bool:
    """Load cuBLAS, which CTranslate2 needs on GPUs, and return whether this succeeded."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or []) if spec else []
    wheels = [Path(root, "cublas", "lib") for root in roots]
    for place in (Path(), *wheels):
        with suppress(OSError):
            if place in wheels:
                ctypes.CDLL(str(place / "libcublasLt.so.12"), ctypes.RTLD_GLOBAL)
            ctypes.CDLL(str(place / _CUBLAS), ctypes.RTLD_GLOBAL)
            return True
    return False
