"""Peak memory, memory limits for untrusted files, and faster imports."""

import gc
import importlib
import resource
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError

_SPARE = 64 << 20  # bytes for tensors that are not in a model's files, such as masks
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def import_fast(name: str) -> None:
    """Import a module without garbage collection, which would cost time and free nothing."""
    if name not in sys.modules:
        gc.disable()
        try:
            importlib.import_module(name)
            gc.freeze()
        finally:
            gc.enable()


def peak_memory() -> int:
    """Return this process's peak resident memory, in bytes, since the last `forget_peak`."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Reset the peak that `peak_memory` returns. Only Linux supports this."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def check_zip(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise a ValueError if a ZIP archive unpacks to more than 20 times its size."""
    size = sum(part.file_size for part in archive.infolist())
    if size > 20 * path.stat().st_size:
        raise ValueError(f"it unpacks to {size:,} bytes, more than 20 times its size")


@contextmanager
def bounded_by_files(folder: Path) -> Iterator[None]:
    """Limit the total size of the tensors that this thread creates in the block.

    The limit depends on the size of the model's files in `folder`. Without a limit, a wrong
    config.json could exhaust the memory, because libraries allocate tensors before they read the
    weights.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    files = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    most = 4 * files + _SPARE  # a weight of 1 byte in a file may become a float32 (4 bytes)

    class Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
        made = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            names = {argument.name for argument in func._schema.arguments}
            # Operators with these arguments create a tensor. `non_blocking` occurs only in copies.
            makes = names >= {"device", "pin_memory"} and "non_blocking" not in names
            if makes and str(kwargs.get("device")) != "meta":
                # Get the size from a tensor on the device meta, which uses no memory.
                self.made += func(*args, **{**kwargs, "device": torch.device("meta")}).nbytes
                if self.made > most:
                    raise MemoryError
            return func(*args, **kwargs)

    bounded = Bounded()  # type: ignore[no-untyped-call]
    try:
        with bounded:
            yield
    except Exception as error:  # libraries replace the MemoryError by another error
        if bounded.made <= most:
            raise
        raise UserError(
            f"{folder}: the model cannot be loaded: its settings describe at least "
            f"{bounded.made:,} bytes, but its files have only {files:,}"
        ) from error
