"""Start and stop a Flink cluster on this machine.

python -m tests.flink up [--slots N] [--free-ports]
python -m tests.flink down
"""

import argparse
from pathlib import Path

from tests.flink import cluster


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(prog="python -m tests.flink", description=__doc__)
    parser.add_argument("command", choices=["up", "down"])
    parser.add_argument("--folder", type=Path, default=Path(".flink"), help="of logs and processes")
    parser.add_argument("--slots", type=int, help="of each of the two TaskManagers")
    parser.add_argument("--free-ports", action="store_true", help="not 8081 and the like")
    options = parser.parse_args()
    if options.command == "up":
        found = cluster.up(options.folder, slots=options.slots, free_ports=options.free_ports)
        (options.folder / "options").write_text(" ".join(found.arguments()))
        print(f"Flink is up at http://localhost:{found.rest}, logs in {options.folder}/logs")
        print(f"paraloom corpus --config FILE -- $(cat {options.folder}/options)")
    else:
        print(f"ended: {', '.join(cluster.down(options.folder)) or 'nothing was running'}")


if __name__ == "__main__":
    main()
