"""The GPUs of this machine, and what is asked of them."""

from collections.abc import Sequence

from paraloom.models.errors import UserError
from paraloom.models.nmt.options import NmtOptions


def devices() -> list[int]:
    """The numbers of the CUDA devices that this process sees (`CUDA_VISIBLE_DEVICES`)."""
    import ctranslate2

    return list(range(ctranslate2.get_cuda_device_count()))


def required(accelerator: str | None) -> bool:
    """Whether `accelerator`, Beam's resource hint, asks for NVIDIA's GPUs.

    Raises:
        UserError: it does, and there is none. On a CPU the work would take many times as long.
    """
    asked = accelerator is not None and "nvidia" in accelerator
    if asked and not devices():
        raise UserError(
            f"accelerator: {accelerator}: this worker finds no CUDA device; add "
            "install-nvidia-driver to the hint, use the image for GPUs, or set accelerator to null"
        )
    return asked


def named(options: NmtOptions) -> bool:
    """Whether the options ask for a GPU, so that a CPU is no substitute."""
    return options.device == "cuda" or options.devices is not None


def chosen(options: NmtOptions, found: Sequence[int]) -> list[int]:
    """The GPUs to decode on, of those that a library has `found`; none: on a CPU."""
    if options.device == "cpu":
        return []
    if not found and named(options):
        raise UserError("nmt.device: there is no CUDA device; choose cpu or auto, without devices")
    if missing := set(options.devices or ()) - set(found):
        there = ", ".join(map(str, found))
        raise UserError(f"nmt.devices: there is no GPU {min(missing)}; this machine has {there}")
    return [device for device in found if device in (options.devices or found)]


def check_type(options: NmtOptions, gpus: Sequence[int]) -> None:
    """Check that there is a GPU if the number type needs one."""
    if not gpus and options.compute_type in ("float16", "bfloat16"):
        raise UserError(
            f"nmt.compute_type: {options.compute_type} needs a GPU, and there is none; choose "
            "float32 or int8"
        )
