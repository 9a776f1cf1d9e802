"""`paraloom doctor`: what is installed, which engines and devices work, and how to repair them."""

import ctypes.util
from importlib import metadata

import typer

from paraloom.models.cpu import cores
from paraloom.models.errors import missing_extra
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.manifest import versions

Finding = tuple[bool, str]  # whether it works, and what was found or what to do


def command() -> None:
    """Prints a table of checks; the exit code is 2 if an engine fails that is installed."""
    table, sound = number_table("paraloom doctor", "check", "", "found"), True
    for name, check in {
        "libraries": _libraries,
        "engine ctranslate2": _ctranslate2,
        "engine fairseq": _fairseq,
        "GPU, torch": _torch_gpu,
        "GPU, ctranslate2": _ctranslate2_gpu,
    }.items():
        extra = None
        try:
            works, text = check()
        except Exception as error:  # whatever an import or a driver raises is the finding
            works, text = False, f"{type(error).__name__}: {error}".splitlines()[0]
            extra = missing_extra(text)
        fails = not works and name.startswith("engine") and not extra
        table.add_row(name, "ok" if works else "fails" if fails else "no", extra or text)
        sound = sound and not fails
    console().print(table)
    if not sound:
        raise typer.Exit(2)


def _libraries() -> Finding:
    found = versions()
    missing = [name for name, version in found.items() if version == "not installed"]
    if missing:
        return False, f"{', '.join(missing)} missing: pip install 'paraloom[all]'"
    return True, ", ".join(f"{name} {version}" for name, version in found.items())


def _ctranslate2() -> Finding:
    import ctranslate2

    types = sorted(ctranslate2.get_supported_compute_types("cpu"))
    return "float32" in types, f"{cores()} cores; {', '.join(types)}"


def _fairseq() -> Finding:
    import fairseq.models.transformer

    return True, f"fairseq {fairseq.__version__}"


def _torch_gpu() -> Finding:
    import torch

    if not torch.cuda.is_available():
        return False, "no CUDA device for torch: everything runs on the CPU"
    return True, f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"


def _ctranslate2_gpu() -> Finding:
    import ctranslate2

    devices = ctranslate2.get_cuda_device_count()
    wheels = {distribution.name for distribution in metadata.distributions()}
    cublas = ctypes.util.find_library("cublas") or "nvidia-cublas-cu12" in wheels
    if devices and not cublas:
        return False, "a GPU, but no CUDA 12 cuBLAS: pip install nvidia-cublas-cu12"
    return devices > 0, f"{devices} devices"
