"""The submitting process is killed during back-translation, and the command given again."""

import sys
from functools import partial

from tests.faults.ground import Ground, main


def fault(ground: Ground) -> None:
    """Kill it twice, then let it end."""
    ground.configure("run")
    for shards in (2, 5):
        process = ground.start("run")
        ground.until(partial(ground.in_the_middle, "run", shards), process)
        ground.kill(process)
        before = ground.finished("run")
        ground.say(f"killed after {len(before)} shards")
    ground.finish("run")
    ground.once("run", before, under_way=2)
    ground.same(str(ground.folder / "run"))


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
