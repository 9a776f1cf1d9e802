"""A worker dies of memory on one batch: it is tried in smaller parts, and at last is named."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.ground import Ground, main

PATCH = '''
"""Every Python process that imports this has too little memory for one sentence's batches."""
import os, signal

if "FAULT" in os.environ:
    from paraloom.models.nmt.engine import Engine

    mark, rows, how = os.environ["FAULT"].split("|")
    submit = Engine.submit

    def refuse():
        raise MemoryError("out of memory")

    def with_little_memory(self, batch, *rest):
        marked = any("".join(pieces).replace("\\u2581", " ").strip() == mark for pieces in batch)
        if marked and len(batch) > int(rows):
            with open(os.environ["FAULTS"], "a") as log:
                print(len(batch), file=log)
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            return refuse
        return submit(self, batch, *rest)

    Engine.submit = with_little_memory
'''


def fault(ground: Ground) -> None:
    """Let an engine refuse, and kernels kill, at the batch of one sentence."""
    (ground.folder / "sitecustomize.py").write_text(PATCH)
    ground.env["PYTHONPATH"] = f"{ground.folder}:{ground.env['PYTHONPATH']}"
    mark = Path(ground.paths["source"]).read_text(encoding="utf-8").splitlines()[70]
    for how, rows, text in (
        ("caught", 1, "the engine says that a batch of more than 1 sentence is too much"),
        ("killed", 1, "the kernel kills the worker for a batch of more than 1 sentence"),
        ("killed", 0, "the kernel kills the worker for the sentence alone"),
    ):
        name = f"{how}-{rows}"
        ground.say(f"{text}, of those with: {mark}")
        ground.configure(name)
        log = ground.folder / f"{name}.log"
        given = {"FAULT": f"{mark}|{rows}|{how}", "FAULTS": str(log)}
        said = ground.finish(name, expected=0 if rows else 2, **given)
        sizes = log.read_text().split() if log.exists() else []
        ground.say(f"batches that did not fit, in sentences: {' '.join(sizes)}")
        if how == "caught" or not rows:
            ground.expect("the last of them are smaller", int(sizes[0]) > int(sizes[-1]))
        if not rows:
            ground.expect("one line names the shard and the row", "-00003 (rows 10)" in said)
            continue
        ground.once(name, {}, under_way=2)
        nearly_same(ground, name)


def nearly_same(ground: Ground, name: str) -> None:
    """Compare translations with the undisturbed run's.

    A sentence that is translated in a smaller batch gets the same translation; its score may differ
    in the last bits, since sums are then taken in another order.
    """
    first, second = (
        pa.concat_tables(map(pq.read_table, sorted(Path(run).glob("back_translate/part-*"))))
        for run in (ground.undisturbed(), ground.folder / name)
    )
    score = "translation_score"
    ground.expect(
        "all rows have the same translations",
        first.drop([score]).equals(second.drop([score])),
    )
    apart = np.abs(first[score].to_numpy() - second[score].to_numpy())
    ground.expect(
        f"scores of {np.count_nonzero(apart)} rows differ, by at most {apart.max():.1e}",
        bool(apart.max() < 2e-6),
    )


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
