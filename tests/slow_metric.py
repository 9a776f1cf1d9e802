"""A program that behaves as COMET and bicleaner-ai do: loads slowly, talks on stderr, reads all
pairs, scores them in batches sorted by length, and prints the scores in the order of the pairs.

    python slow_metric.py [SECONDS]

The score is the share of the translation's words that are in the reference.
"""

import sys
import time


def score(reference: str, translation: str) -> float:
    """The share of words."""
    words = translation.split()
    return sum(word in reference.split() for word in words) / max(len(words), 1)


def main() -> None:
    """Read pairs, print scores."""
    print("loading the model …", file=sys.stderr, flush=True)
    time.sleep(float(sys.argv[1]) if sys.argv[1:] else 0.1)
    pairs = [line.rstrip("\n").split("\t") for line in sys.stdin]
    scores = [0.0] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][2]))
    for done, i in enumerate(order, start=1):
        _, reference, translation = pairs[i]
        scores[i] = score(reference, translation)
        print(f"\r{done} of {len(pairs)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    print("\n".join(f"{value:.6f}" for value in scores))


if __name__ == "__main__":
    main()
