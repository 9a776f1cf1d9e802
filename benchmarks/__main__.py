"""Run the benchmarks of `make bench`: python -m benchmarks [NAME …]"""

import importlib
import sys

from paraloom.models.errors import UserError

BENCHMARKS = (
    *("back_translation", "scoring", "training", "embedding", "flink"),
    *("untranslated", "candidates", "judged_precision"),
)


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them, and return the exit status."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"benchmarks: no {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    failed = 0
    for name in names or BENCHMARKS:
        try:
            importlib.import_module(f"benchmarks.{name}").main()
        except UserError as error:
            print(f"benchmarks: {name}: {error}", file=sys.stderr)
            failed = 2
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
