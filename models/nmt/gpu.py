"""The GPUs of this machine, and what is asked of them."""

from collections.abc import Sequence

from models.errors import UserError


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


def chosen(wanted: Sequence[int] | None) -> list[int]:
    """The devices to use: `wanted` (the key `nmt.devices`), or all."""
    found = devices()
    if wanted and (missing := set(wanted) - set(found)):
        there = ", ".join(map(str, found)) or "none"
        raise UserError(f"nmt.devices: there is no GPU {min(missing)}; this machine has {there}")
    return [device for device in found if not wanted or device in wanted]
