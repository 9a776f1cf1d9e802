"""Bad rows of every kind that real corpora have."""

from __future__ import annotations

from random import Random

# Rows that ingest must reject, as bytes made from a sound row (id, score, Czech, English).
REJECTED = (
    "too few columns",
    "too many columns",
    "empty czech",
    "empty english",
    "invalid utf-8",
    "control character",
    "too long",
    "duplicate id",
)
# Rows that are sound in form and bad in content: the filter's business.
ACCEPTED = ("untranslated", "misaligned", "numbers", "boilerplate")

Row = tuple[str, str, str, str]
BOILERPLATE = [
    ("© {n} Všechna práva vyhrazena.", "© {n} All rights reserved."),
    ("Strana {n} z {m}", "Page {n} of {m}"),
    ("Klikněte zde pro další informace ({n}).", "Click here for more information ({n})."),
    ("Překlad titulků: verze {n}.{m}", "Subtitles: version {n}.{m}"),
]


def broken(kind: str, row: Row, earlier: str, random: Random) -> bytes:
    """One row that ingest must reject; `earlier` is the id of a row that stands before it."""
    english = row[3]
    cells = [text.encode() for text in row]
    if kind == "too few columns":
        cells = cells[: random.choice([1, 2, 3])]
    elif kind == "too many columns":
        cells += [random.choice([b"", cells[3]])]
    elif kind == "empty czech":
        cells[2] = random.choice([b"", b"  "])
    elif kind == "empty english":
        cells[3] = random.choice([b"", b" "])
    elif kind == "invalid utf-8":  # cut inside a letter, as by a tool that counts bytes
        cells[2] = cells[2] + "ř".encode()[:1]
    elif kind == "control character":
        at = random.randrange(1, len(english))
        cells[3] = (english[:at] + random.choice("\x00\x07\x1b\x85") + english[at:]).encode()
    elif kind == "too long":
        cells[2:] = [" ".join([text] * (3_000 // len(text) + 1)).encode() for text in row[2:]]
    elif kind == "duplicate id":
        cells[0] = earlier.encode()
    return b"\t".join(cells)


def poor(kind: str, row: Row, other: str, random: Random) -> bytes:
    """One row sound in form but no translation; `other` is the English of another pair."""
    name, score, czech, english = row
    if kind == "untranslated":
        czech = english = random.choice([czech, english])
    elif kind == "misaligned":
        english = other
    elif kind == "numbers":
        numbers = " ".join(str(random.randrange(1, 10_000)) for _ in range(random.randrange(2, 7)))
        czech = english = numbers
    else:
        n, m = random.randrange(1990, 2020), random.randrange(2, 300)
        czech, english = (t.format(n=n, m=m) for t in random.choice(BOILERPLATE))
    return "\t".join((name, score, czech, english)).encode()
