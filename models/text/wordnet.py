"""Antonyms from WordNet's data files (Miller 1995), whose format is in the manual page wndb."""

import re
from collections import defaultdict
from pathlib import Path

from paraloom.models.errors import UserError, in_one_line

_FILES = {"n": "data.noun", "v": "data.verb", "a": "data.adj", "r": "data.adv"}
_ANTONYM = re.compile(r" ! (\d{8}) ([nvar]) (\w\w)(\w\w)")  # synset, part of speech, word numbers


def find_wordnet(folder: str | Path) -> Path:
    """Return `folder` as a path. Raise a UserError if WordNet's files are missing there."""
    if not (Path(folder) / _FILES["n"]).is_file():
        raise UserError(f"{folder}: no file {_FILES['n']} of WordNet; apt-get install wordnet-base")
    return Path(folder)


def open_antonyms(folder: Path, kinds: str = "nvar") -> dict[str, set[str]]:
    """Read the antonyms of each word, in both directions.

    `kinds` selects nouns (n), verbs (v), adjectives (a) and adverbs (r).
    """
    synsets: dict[tuple[str, str], list[str]] = {}
    pointers, found = [], defaultdict(set)
    with in_one_line(f"{folder}: cannot be read as WordNet"):
        for kind in kinds:
            for line in (find_wordnet(folder) / _FILES[kind]).read_text("utf-8").splitlines():
                data = line.split(" | ")[0]
                if to := _ANTONYM.findall(data):
                    key, fields = (data[:8], kind), data.split()
                    words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                    synsets[key] = [re.sub(r"\(.*\)", "", word).lower() for word in words]
                    pointers += [((*key, one), (*other, two)) for *other, one, two in to]
        for ends in pointers:
            one, other = (synsets[key, kind][int(i, 16) - 1] for key, kind, i in ends)
            found[one].add(other)
            found[other].add(one)
    return dict(found)
