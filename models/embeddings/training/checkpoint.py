"""Checkpoints and metrics, from which an interrupted training resumes."""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from paraloom.models.files import atomic_file, atomic_folder
from paraloom.models.printing import say
from paraloom.models.structured import parse_json
from paraloom.models.tracking import Board


def checkpoints_of(model: Path) -> Path:
    """Return the working folder of the training that writes the folder `model`."""
    return model.with_name(f"{model.name}.training")


def remove_checkpoints(model: Path) -> None:
    """Remove the working folder, if any. Call this after the model was saved and uploaded."""
    _remove(checkpoints_of(model))


def _remove(folder: Path) -> None:
    (folder / "key.json").unlink(missing_ok=True)  # a partly deleted folder is not resumed
    shutil.rmtree(folder, ignore_errors=not folder.exists())


class TrainingFolder:
    """The working folder of a training, beside the folder of the finished model.

        key.json          options, seed and digests of the inputs
        <kind>.txt        the vocabularies
        pairs/            copies of the pairs in `embeddings.pairs`
        metrics.jsonl     metrics of the training so far
        step-<number>/    the last checkpoint: state.json, tensors.safetensors

    If the options or inputs (the key) have changed, the files are deleted.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.folder = folder
        self.board: Board | None = None
        text = json.dumps(key, indent=1, sort_keys=True) + "\n"
        path = folder / "key.json"
        if folder.exists() and (not path.exists() or path.read_bytes() != text.encode()):
            say(f"{folder}: options or pairs have changed; training starts again")
            _remove(folder)
        if not path.exists():
            with atomic_file(path) as temporary:
                temporary.write_text(text)

    def close(self) -> None:
        """Close TensorBoard's files."""
        if self.board:
            self.board.close()

    def last(self) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """Read the last checkpoint's state and tensors. Return None if there is no checkpoint."""
        steps = {int(path.name[5:]): path for path in self.folder.glob("step-*")}
        if not steps:
            return None
        path = steps[max(steps)]
        state = json.loads((path / "state.json").read_text())
        return state, load_file(path / "tensors.safetensors")

    def save(self, step: int, state: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Write a checkpoint, then remove the previous one."""
        path = self.folder / f"step-{step}"
        with atomic_folder(path) as temporary:
            on_cpu = {name: tensor.cpu() for name, tensor in tensors.items()}
            save_file(on_cpu, temporary / "tensors.safetensors")
            (temporary / "state.json").write_text(json.dumps(state, indent=1) + "\n")
        for other in self.folder.glob("step-*"):
            if other != path:
                shutil.rmtree(other)

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to metrics.jsonl and to TensorBoard's files."""
        with (self.folder / "metrics.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")
        if self.board:
            self.board.log(line)

    def continue_log(self, count: int, model: Path) -> None:
        """Keep only the first `count` lines of metrics.jsonl, which precede the last checkpoint.
        Write TensorBoard's files from these lines, beside the folder `model`."""
        path, found = self.folder / "metrics.jsonl", list[bytes]()
        for line in path.read_bytes().splitlines() if path.exists() else ():
            with suppress(ValueError):  # a crash may damage the last line
                parse_json(line, dict[str, float])
                found.append(line)
        if path.exists():
            with atomic_file(path) as temporary:
                temporary.write_bytes(b"".join(line + b"\n" for line in found[:count]))
        self.board = Board(model)
        for line in found[:count]:
            self.board.log(json.loads(line))
