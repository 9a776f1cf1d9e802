"""Run fairseq commands one after another in this process, under torch's safe loading.

    python -P models/nmt/fairseq_run.py COMMANDS.json

where the file holds `[["preprocess", "--option", "value", …], ["train", …]]`. Made to be started by
`models.nmt.train` with a pipe as standard input: when the parent dies, the pipe closes, and this
process ends rather than train on unseen.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import threading
from pathlib import Path


def _end_with_parent() -> None:
    while os.read(0, 1):  # not sys.stdin: its lock would be held in every fork
        pass
    os._exit(1)


def _keep(task: object, path: str, updates: int) -> None:
    """fairseq's hook after a save: keep a copy, whole or not at all.

    fairseq itself keeps no checkpoint by updates where an epoch happens to end.
    """
    kept = Path(path).with_name(f"update_{updates}.pt")
    temporary = kept.with_suffix(".tmp")
    shutil.copyfile(path, temporary)
    temporary.replace(kept)


def main() -> None:
    """Run the commands of the file named on the command line."""
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    import torch

    torch.serialization.add_safe_globals([argparse.Namespace])
    from fairseq.tasks.translation import TranslationTask

    TranslationTask.post_save = _keep
    for name, *arguments in json.loads(Path(sys.argv[1]).read_text()):
        if name == "train" and not torch.cuda.is_available():
            arguments.append("--cpu")
        sys.argv[:] = [f"fairseq-{name}", *arguments]
        importlib.import_module(f"fairseq_cli.{name}").cli_main()


if __name__ == "__main__":
    main()
