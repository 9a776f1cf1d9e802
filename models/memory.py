"""Memory: peaks, limits on loading a model, and imports without garbage collection."""

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

_SPARE = 64 << 20  # bytes of tensors that are not in files, such as masks
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def import_fast(name: str) -> None:
    """Import a module without garbage collection, which would visit many objects and free none."""
    if name not in sys.modules:
        gc.disable()
        try:
            importlib.import_module(name)
            gc.freeze()
        finally:
            gc.enable()


def peak_memory() -> int:
    """Peak resident memory in bytes since the process started, or since `forget_peak`."""
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def forget_peak() -> None:
    """Reset the peak to the present memory; only on Linux."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def check_zip(path: Path, archive: zipfile.ZipFile) -> None:
    """Raise an error if an archive unpacks to more than 20 times its size."""
    size = sum(part.file_size for part in archive.infolist())
    if size > 20 * path.stat().st_size:
        raise ValueError(f"it unpacks to {size:,} bytes")


@contextmanager
def bounded_by_files(folder: Path) -> Iterator[None]:
    """Limit the tensors that this thread makes in the block by the size of a model's files.

    Libraries allocate the tensors described in config.json before they look for them in the weight
    files.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    files = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    most = 4 * files + _SPARE  # 4: one-byte numbers become float32

    class Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
        made = 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            names = {argument.name for argument in func._schema.arguments}
            makes = names >= {"device", "pin_memory"} and "non_blocking" not in names  # no copy
            if makes and str(kwargs.get("device")) != "meta":
                # A tensor on the device meta has a size, but no memory.
                self.made += func(*args, **{**kwargs, "device": torch.device("meta")}).nbytes
                if self.made > most:
                    raise MemoryError
            return func(*args, **kwargs)

    bounded = Bounded()  # type: ignore[no-untyped-call]
    try:
        with bounded:
            yield
    except Exception as error:  # libraries replace our error with their own
        if bounded.made <= most:
            raise
        raise UserError(
            f"{folder}: the model cannot be loaded: its settings describe {bounded.made:,} "
            f"bytes or more, its files have {files:,}"
        ) from error
