"""Every frame says what a person wrote by hand, in correct Czech and in plain English."""

from collections import ChainMap
from pathlib import Path

import pytest

from pipeline.sample import lexicon
from pipeline.sample.corpus import FRAMES
from pipeline.sample.frame import Frame
from pipeline.sample.lexicon import NP, Action, Adjective, Filler, Phrase, Pronoun

BY_NAME = {frame.name: frame for frame in FRAMES}
PRONOUNS = {
    "I.m": lexicon.I_MAN, "I.f": lexicon.I_WOMAN, "WE": lexicon.WE, "HE": lexicon.HE,
    "SHE": lexicon.SHE, "YOU": lexicon.YOU, "YOU_POLITE": lexicon.YOU_POLITE,
}  # fmt: skip


def name(filler: Filler | None) -> str:
    """What the gold file calls a filler."""
    if isinstance(filler, Pronoun):
        return next(key for key, pronoun in PRONOUNS.items() if pronoun == filler)
    if isinstance(filler, NP):
        number = f"*{filler.count}" if filler.count else "+" if filler.plural else ""
        text = f"{filler.possessive} {filler.noun.lemma}{number}".strip()
    elif isinstance(filler, Action):
        text = filler.key
    elif isinstance(filler, Adjective):
        text = filler.lemma or filler.comparative
    elif isinstance(filler, Phrase):
        forms = dict(filler.czech)
        text = forms[""] or f"{forms.get('pres', '')} {forms.get('pres_end', '')}".strip() or "1"
    else:
        text = "None"
    return text.replace(" ", "_")


def meaning(frame: Frame, slots: str) -> dict[str, Filler | None]:
    """The fillers that a line of the gold file names, each among its slot's options."""
    wanted = dict(item.split("=", 1) for item in slots.split())
    assert not wanted.keys() - frame.slots.keys()
    found: dict[str, Filler | None] = {}
    for slot, spec in frame.slots.items():
        options = spec.options(found)
        key = wanted.get(slot, "None" if None in options else name(options[0]))
        names = {key, key.split("/")[0]}
        match = [o for o in options if name(o) in names or name(o).split("/")[0] in names]
        if not match and isinstance(options[0], Adjective):  # a comparative
            match = [o for o in options if o and o.comparative == key]
        assert match, f"{frame.name}: {slot}={key} is not among {sorted({*map(name, options)})}"
        found[slot] = match[0]
    return found


GOLD = [
    line.split("\t")
    for line in (Path(__file__).parent / "gold.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("frame", "slots", "czech", "english"), GOLD, ids=[g[2] for g in GOLD])
def test_gold(frame, slots, czech, english):
    meant = meaning(BY_NAME[frame], slots)
    assert BY_NAME[frame].in_czech(meant)[0] == czech
    assert BY_NAME[frame].in_english(meant) == english


def test_every_frame_has_a_gold_sentence():
    assert {frame for frame, *_ in GOLD} == BY_NAME.keys()
    assert len(GOLD) >= 60


def test_verbs_of_a_frame_do_not_hide_its_slots():
    for frame in FRAMES:
        assert len(ChainMap(frame.slots, frame.verbs)) == len(frame.slots) + len(frame.verbs)
