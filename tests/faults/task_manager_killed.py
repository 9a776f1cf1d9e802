"""A TaskManager is killed during back-translation: the job goes on with its successor."""

from __future__ import annotations

import sys

from flink_ground import flink, kill, restart
from ground import Ground, main


def fault(ground: Ground) -> None:
    """Kill one of two, and start it again, as a supervisor would."""
    with flink(ground) as cluster:
        ground.configure("run")
        process = ground.start("run")
        ground.until(lambda: ground.in_the_middle("run", 2), process)
        kill(cluster, "taskmanager-1")
        before = ground.finished("run")
        ground.say(f"killed a TaskManager after {len(before)} shards")
        restart(cluster)
        ground.say("it is up again")
        _, said = process.communicate()
        ground.expect("the same command comes to its end", process.returncode == 0)
        if process.returncode:
            print(said[-3000:])
    ground.once("run", before, under_way=4)
    ground.same(str(ground.folder / "run"))


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
