"""The pool of Python workers is killed during back-translation, with all workers, and restarted."""

import sys

from tests.faults.flink_ground import flink, lose
from tests.faults.ground import Ground, main


def fault(ground: Ground) -> None:
    """Kill the pool and its workers, and start it again, as a supervisor would."""
    with flink(ground) as cluster:
        process, before = lose(ground, cluster, "workers", "the pool and its workers")
        _, said = process.communicate()
        ground.say(f"the command ends with exit code {process.returncode}")
        if process.returncode:
            ground.say(f"it said: {said.strip().splitlines()[-1][:300]}")
            ground.finish("run")
            ground.say("the command was given again")
    ground.once("run", before, under_way=4)
    ground.same(str(ground.folder / "run"))


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
