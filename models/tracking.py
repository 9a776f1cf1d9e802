"""TensorBoard event files with training metrics."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


class Board:
    """Writer of TensorBoard event files for one training.

    The files are written to `logs/tensorboard/<name>`, beside the model folder `<name>`. They
    replace earlier files. Nothing is written if tensorboard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self.place = folder.parent / "logs" / "tensorboard" / folder.name
        shutil.rmtree(self.place, ignore_errors=True)
        self.writer: Any = None

    def log(self, line: Mapping[str, Any]) -> None:
        """Write the metrics in `line` for the training step `line["step"]`."""
        with suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self.writer = self.writer or SummaryWriter(str(self.place))
            for name in line.keys() - {"step"}:
                self.writer.add_scalar(name, line[name], line["step"])
            self.writer.flush()

    def close(self) -> None:
        """Close the event file."""
        if self.writer:
            self.writer.close()
