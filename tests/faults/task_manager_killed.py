"""A TaskManager is killed during back-translation: the job goes on with its successor."""

import sys

from tests.faults.flink_ground import flink, lose
from tests.faults.ground import Ground, main


def fault(ground: Ground) -> None:
    """Kill one of two, and start it again, as a supervisor would."""
    with flink(ground) as cluster:
        process, before = lose(ground, cluster, "taskmanager-1", "a TaskManager")
        _, said = process.communicate()
        ground.expect("the same command comes to its end", process.returncode == 0)
        if process.returncode:
            print(said[-3000:])
    ground.once("run", before, under_way=4)
    ground.same(str(ground.folder / "run"))


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
