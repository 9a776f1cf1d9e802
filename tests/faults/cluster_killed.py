"""A TaskManager, and the pool of workers, are killed during back-translation, and started again."""

import os
import signal
import sys
import time
from functools import partial

from tests.faults.ground import Ground, main
from tests.flink import cluster
from tests.run_helpers import ROOT


def fault(ground: Ground) -> None:
    """Start each again as a supervisor would: the job goes on, or the command is given again."""
    ground.undisturbed()
    folder, names = ground.folder / "flink", ("taskmanager-1", "workers")
    os.environ["PYTHONPATH"] = str(ROOT)  # of the workers
    found = cluster.up(folder, slots=1, free_ports=True)
    here, ground.beam = ground.beam, tuple(found.arguments())
    try:
        for name in names:
            ground.configure(name)
            command = ground.start(name)
            ground.until(partial(ground.in_the_middle, name, 2), command)
            process = cluster.process(folder, name)
            assert process is not None
            os.killpg(process.pid, signal.SIGKILL)
            while cluster.process(folder, name):
                time.sleep(0.05)
            before = ground.finished(name)
            ground.say(f"killed {name} after {len(before)} shards")
            cluster.up(folder)
            _, said = command.communicate()
            if command.returncode:
                ground.say(f"the command ended: {said.strip().splitlines()[-1][:300]}")
                ground.expect("it outlives a TaskManager", name == "workers")
                ground.finish(name)
            ground.once(name, before, under_way=4)
    finally:
        ground.beam = here
        ground.say(f"ended: {', '.join(cluster.down(folder))}")
    for name in names:
        ground.same(str(ground.folder / name))


if __name__ == "__main__":
    sys.exit(main(fault, __doc__))
