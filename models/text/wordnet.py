"""Antonyms of WordNet (Miller 1995), from its data files (wndb(5WN))."""

import re
from collections import defaultdict
from pathlib import Path

from paraloom.models.errors import UserError

_FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "r": "data.adv"}


def find_wordnet(folder: str) -> Path:
    """The folder of WordNet's files."""
    if not (Path(folder) / _FILES["n"]).is_file():
        raise UserError(f"{folder}: has no {_FILES['n']} of WordNet; apt-get install wordnet-base")
    return Path(folder)


def open_antonyms(folder: Path, kinds: str = "nvar") -> dict[str, frozenset[str]]:
    """The antonyms of each word of these kinds; an antonym's are the word's."""
    synsets: dict[tuple[str, str], list[str]] = {}
    pointers = []
    for kind in kinds:
        for line in (folder / _FILES[kind]).read_text("utf-8").splitlines():
            if " ! " not in line or line.startswith(" "):  # has no antonym; is the licence
                continue
            offset, _, _, count, *rest = line.split(" | ")[0].split()
            words = [re.sub(r"\(.*\)", "", word).lower() for word in rest[: 2 * int(count, 16) : 2]]
            synsets[kind, offset] = words
            at = 2 * int(count, 16) + 1
            for i in range(at, len(rest) - 3, 4):
                if rest[i] == "!":
                    pointers.append((words, *rest[i + 1 : i + 4]))
    found = defaultdict(set)
    for words, offset, kind, which in pointers:
        one = words[int(which[:2], 16) - 1]
        other = synsets["a" if kind == "s" else kind, offset][int(which[2:], 16) - 1]
        found[one].add(other)
        found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}
