"""Start and stop a Flink cluster on this machine.

python -m paraloom.beam_jobs.runners.flink up [--slots N] [--free-ports]
python -m paraloom.beam_jobs.runners.flink down
"""

import argparse
import sys
from pathlib import Path

from paraloom.beam_jobs.runners.flink import cluster
from paraloom.models.errors import UserError
from paraloom.models.printing import say, show


def main() -> int:
    """Run a command; the exit code is 0, or 2 after a one-line error."""
    parser = argparse.ArgumentParser(
        prog="python -m paraloom.beam_jobs.runners.flink", description=__doc__
    )
    parser.add_argument("command", choices=["up", "down"])
    parser.add_argument(
        "--folder", type=Path, default=cluster.default_folder(), help="of logs and process ids"
    )
    parser.add_argument("--slots", type=int, help="of each of the two TaskManagers")
    parser.add_argument("--free-ports", action="store_true", help="not 8081 and the like")
    options = parser.parse_args()
    try:
        if options.command == "up":
            found = cluster.up(options.folder, slots=options.slots, free_ports=options.free_ports)
            show(f"Flink is up at http://localhost:{found.rest}, logs in {options.folder}/logs")
            show("paraloom corpus --config FILE --on flink; or, in full, what is given to Beam:")
            show(" ".join(found.arguments()))
        else:
            ended = cluster.down(options.folder)
            show(f"ended: {', '.join(ended)}" if ended else "nothing was running")
    except (UserError, OSError) as error:
        say(f"flink: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
