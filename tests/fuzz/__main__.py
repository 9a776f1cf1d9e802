"""`python -m tests.fuzz --seconds 3600`: random damage to all inputs that may come from others.

Prints the number of cases; a failure is printed with the seed that makes it again
(`--target NAME --seed SEED --cases 1`). Exit code 1 if there is one. A case that kills the process
leaves a stack, and its files in the folder that is printed first.
"""

import argparse
import faulthandler
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.fuzz import offline
from tests.fuzz.harness import Found, run_case


def main() -> int:
    """Fuzz for some time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cases", type=int, default=0, help="instead of --seconds")
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--target", action="append")
    options = parser.parse_args()
    faulthandler.enable()
    offline()
    from tests.fuzz.model_targets import FORMS, model_of, translation_model
    from tests.fuzz.targets import TARGETS

    chosen = {name: TARGETS[name] for name in options.target or TARGETS}
    if "checkpoint" in chosen:
        translation_model()  # where it is trained, that takes longer than a case may
    for form in FORMS if "other_model" in chosen else ():
        model_of(form)
    found, random, ends = Found(), Random(options.seed), time.monotonic() + options.seconds
    said = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        print(f"seed {options.seed}, in {folder}", flush=True)
        while True:
            total = found.cases.total()
            if total >= options.cases if options.cases else time.monotonic() > ends:
                break
            ((name, (case, _)),) = random.choices(
                list(chosen.items()), [weight for _, weight in chosen.values()]
            )
            seed = options.seed if options.cases == 1 else f"{options.seed}-{total}"
            known = len(found.failures)
            run_case(name, case, seed, Path(folder), found)
            for kind, text in list(found.failures.items())[known:]:
                print(f"FAILURE {kind}: {text}", flush=True)
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(f"{found.cases.total():,} cases", flush=True)
    counts = ", ".join(f"{name} {cases:,}" for name, cases in sorted(found.cases.items()))
    print(f"{found.cases.total():,} cases ({counts}), {len(found.failures)} kinds of failure")
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
