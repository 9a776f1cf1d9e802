"""Labelled pairs: their parts, and those that synonyms add."""

from pathlib import Path

import numpy as np
import pytest

from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.errors import UserError
from paraloom.papers.datasets.splits import STS_SHARES, augmented, read_synonyms, shares, split
from tests.labelled import labelled, write_sick


def pairs(n: int) -> LabelledPairs:
    first, second = ([f"a {i}{more}" for i in range(n)] for more in ("", " again"))
    return labelled(first, second, np.arange(n) % 6)


def test_parts_are_disjoint_whole_and_always_the_same() -> None:
    parts = shares(pairs(101), STS_SHARES)
    assert [len(part.scores) for part in parts] == [40, 10, 51]
    found = [text for part in parts for text in part.first.to_pylist()]
    assert sorted(found) == sorted(pairs(101).first.to_pylist())
    again = shares(pairs(101), STS_SHARES)
    assert [part.first.to_pylist() for part in again] == [part.first.to_pylist() for part in parts]
    number = int(parts[2].first[3].as_py().split()[1])
    assert (parts[2].second[3].as_py(), parts[2].scores[3]) == (f"a {number} again", number % 6)


def test_sick_and_sts(tmp_path: Path) -> None:
    folder = write_sick(tmp_path / "sick", train=20, trial=5)
    found = split([str(folder)], held_out=0.1)
    assert (len(found.train.scores), len(found.development.scores)) == (18, 2)
    assert [data.name for data in found.test] == ["trial"] and found.train.scale == (1, 5)
    assert found.train.entailment is not None
    alone = split([str(folder / "SICK_train.txt")], held_out=0.1)
    assert alone.train.first == found.train.first and alone.test == []
    with pytest.raises(UserError, match="no pairs of SICK to train on"):
        split([str(folder / "SICK_trial.txt")], held_out=0.1)

    (tmp_path / "x.tsv").write_text("".join(f"{i % 6}\ta {i}\tb {i}\n" for i in range(30)))
    of_sts = split([str(tmp_path / "x.tsv")], held_out=0.1)
    assert [len(d.scores) for d in (of_sts.train, of_sts.development, *of_sts.test)] == [12, 3, 15]
    with pytest.raises(UserError, match="from 1 to 5, and STS's labels from 0 to 5"):
        split([str(tmp_path / "x.tsv"), str(folder)], held_out=0.1)


WORDNET = (
    "  1 This software and database is being provided to you, the LICENSEE\n"
    "02084071 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 001 @ 02083346 n 0000 | a canid\n"
    "10285313 18 n 02 man 0 adult_male 0 000 | an adult person\n"
    "02118333 05 n 02 Fox 0 vixen 0 000 | a canid\n"
)
ADJECTIVES = "00014358 00 a 02 ample 0 galore(ip) 0 000 | existing in abundance\n"


def test_wordnet_gives_the_single_words_of_each_synset(tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text(WORDNET)
    (tmp_path / "data.adj").write_text(ADJECTIVES)
    synonyms = {"fox": ["vixen"], "vixen": ["fox"], "ample": ["galore"], "galore": ["ample"]}
    assert read_synonyms(tmp_path) == synonyms


def test_paraphrases_give_those_of_single_words(tmp_path: Path) -> None:
    path = tmp_path / "ppdb.txt"
    path.write_text("[NN] ||| dog ||| hound ||| x\n[NP] ||| a dog ||| dog ||| x\n")
    assert read_synonyms(path) == {"dog": ["hound"]}
    path.write_text("dog hound dog\nrun runs\n")
    assert read_synonyms(path) == {"dog": ["hound"], "run": ["runs"]}


def test_augmented_pairs_are_pairs_with_synonyms_in_them() -> None:
    first, second = ["A dog runs fast", "nothing here"], ["Dog and man", "nothing"]
    data = labelled(first, second, [4.0, 2.0], scale=(1.0, 5.0))
    synonyms = {"dog": ["hound", "pooch"], "fast": ["quickly"]}
    found = augmented(data, synonyms, 400, seed=1)
    assert len(found.scores) == 400 and found.scale == (1.0, 5.0)
    several = 0
    sides = found.first.to_pylist(), found.second.to_pylist()
    for one, other, score in zip(*sides, found.scores, strict=True):
        if score == 2.0:
            assert (one, other) == ("nothing here", "nothing")
            continue
        before = ["A", "dog", "runs", "fast", "Dog", "and", "man"]
        words = zip(before, [*one.split(), *other.split()], strict=True)
        changed = [(old, new) for old, new in words if old != new]
        assert changed and all(new in synonyms[old.lower()] for old, new in changed)
        several += len(changed) > 1
    assert 50 < several < 150  # half of the 200 that can change
    again = augmented(data, synonyms, 400, seed=1)
    assert again.first == found.first
    assert augmented(data, synonyms, 400, seed=2).first != found.first
