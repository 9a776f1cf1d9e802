"""Run fairseq commands one after another in this process, with torch's safe loading.

    python -P models/nmt/fairseq_run.py COMMANDS.json

The file contains `[["preprocess", "--option", "value", …], ["train", …]]`.
`paraloom.models.nmt.train` starts this script with a pipe as standard input. If the parent dies,
the pipe closes and this process exits.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

TO_USER = "paraloom: "  # prefix of lines that `paraloom.models.nmt.train` shows

# Use mixed precision, and prepare batches in other processes. Use only one GPU: with several GPUs,
# fairseq would train in new processes, without the changes that `main` makes.
_ON_GPU = ["--fp16", "--num-workers=2", "--distributed-world-size=1"]


def _end_with_parent() -> None:
    while os.read(0, 1):  # not sys.stdin, whose lock a forked process would inherit
        pass
    os._exit(1)


def _copy_checkpoint(task: object, path: str, updates: int) -> None:
    """Copy a checkpoint to `update_<updates>.pt`. fairseq calls this hook after saving. fairseq's
    own name for a checkpoint at the end of an epoch does not contain the number of updates."""
    copy = Path(path).with_name(f"update_{updates}.pt")
    temporary = copy.with_suffix(".tmp")
    shutil.copyfile(path, temporary)
    temporary.replace(copy)


def _batch_by_size(
    indices: Iterable[int],
    num_tokens_fn: Callable[[int], int],
    *,
    num_tokens_vec: Any = None,
    max_tokens: int,
    required_batch_size_multiple: int = 1,
    **_: Any,
) -> list[Any]:
    """Make the same batches as fairseq's `batch_by_size`, which would need a C++ compiler."""
    order = np.asarray(indices, dtype=np.int64)
    lengths = (
        [num_tokens_fn(index) for index in order.tolist()]
        if num_tokens_vec is None
        else np.asarray(num_tokens_vec).tolist()
    )
    multiple = required_batch_size_multiple
    ends: list[int] = []
    # The current batch is [start:end], with at most `longest` tokens per example. The examples
    # after `end` have at most `tail` tokens, and join the batch when its size fits `multiple`.
    start = end = longest = tail = 0
    for last, length in enumerate(lengths, start=1):
        tail = max(tail, length)
        overflow = (last - start) * max(longest, tail) > max_tokens
        if overflow:
            ends.append(end)
            if (last - end) * tail > max_tokens:
                ends.append(last - 1)
                tail = length
            start, longest = ends[-1], 0
        if overflow or last - start < multiple or (last - start) % multiple == 0:
            end, longest, tail = last, max(longest, tail), 0
    if end != len(lengths):
        ends.append(end)
    batches = np.split(order, ends)
    # Drop an incomplete last batch, as fairseq does.
    return batches[:-1] if multiple > 1 and len(batches[-1]) % multiple else batches


def main() -> None:
    """Run the commands in the file `sys.argv[1]`."""
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)

    def watch() -> None:
        threading.Thread(target=_end_with_parent, daemon=True).start()

    watch()
    os.register_at_fork(after_in_child=watch)  # fairseq forks processes
    import torch

    torch.serialization.add_safe_globals([argparse.Namespace])
    from fairseq.data import data_utils
    from fairseq.tasks.translation import TranslationTask

    data_utils.batch_by_size = _batch_by_size
    TranslationTask.post_save = _copy_checkpoint
    for name, *arguments in json.loads(Path(sys.argv[1]).read_text()):
        if name == "train":
            gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
            arguments += _ON_GPU if gpus else ["--cpu"]
            if gpus > 1:
                print(f"{TO_USER}training on one of {gpus} GPUs", flush=True)
        sys.argv[:] = [f"fairseq-{name}", *arguments]
        importlib.import_module(f"fairseq_cli.{name}").cli_main()


if __name__ == "__main__":
    main()
