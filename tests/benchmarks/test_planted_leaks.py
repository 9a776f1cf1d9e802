import numpy as np
import pytest

from benchmarks import generated
from benchmarks.planted_leaks import KINDS, placed, plant
from paraloom.models.errors import UserError


def test_planted_texts_are_the_translations_of_their_rows() -> None:
    changes, kinds = placed({"exact": ["a b"], "paraphrase": ["c d"]}, 5)
    before = generated.pairs(5, 0)
    after = generated.changed(before, 0, changes)
    rows = zip(*(after[name].to_pylist() for name in ("id", "translation")), strict=True)
    found = {kinds[name]: text for name, text in rows if name in kinds}
    assert found == {"exact": "a b", "paraphrase": "c d"}
    assert after.drop_columns("translation") == before.drop_columns("translation")
    with pytest.raises(UserError, match="1 rows are fewer than 2 texts"):
        placed({"exact": ["a", "b"]}, 1)


def test_texts_that_leak_a_sentence() -> None:
    pair = ("A dog runs fast.", "A fast dog is running.")
    made = {kind: plant(kind, pair, np.random.default_rng(0)) for kind in KINDS}
    assert made["exact"] == pair[0] and made["paraphrase"] == pair[1]
    assert made["re-cased"] == "“A DOG RUNS FAST”  !"
    assert " A dog runs fast " in made["inside a longer sentence"]
    changed = zip(made["one word changed"].split(), pair[0].split(), strict=True)
    assert sum(one != other for one, other in changed) == 1
