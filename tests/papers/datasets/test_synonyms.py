from pathlib import Path

from paraloom.papers.datasets.synonyms import augmented, read_synonyms
from tests.labelled import labelled

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
    assert read_synonyms(tmp_path) == {
        "fox": ["vixen"],
        "vixen": ["fox"],
        "ample": ["galore"],
        "galore": ["ample"],
    }


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
        changed = [
            (old, new)
            for old, new in zip(before, [*one.split(), *other.split()], strict=True)
            if old != new
        ]
        assert changed and all(new in synonyms[old.lower()] for old, new in changed)
        several += len(changed) > 1
    assert 50 < several < 150  # half of the 200 that can change
    again = augmented(data, synonyms, 400, seed=1)
    assert again.first == found.first
    assert augmented(data, synonyms, 400, seed=2).first != found.first
