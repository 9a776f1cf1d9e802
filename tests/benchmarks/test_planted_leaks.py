import numpy as np
import pytest

from benchmarks import generated
from benchmarks.planted_leaks import KINDS, plant
from paraloom.models.errors import UserError


def test_planted_texts_are_the_translations_of_their_rows() -> None:
    changes = generated.planted([{"translation": "a b"}, {"translation": "c d"}], 5)
    before = generated.pairs(5, 0)
    after = generated.changed(before, 0, changes)
    assert [after["translation"][row].as_py() for row in changes] == ["a b", "c d"]
    others = [row for row in range(5) if row not in changes]
    assert len(others) == 3 and after.take(others) == before.take(others)
    assert after.drop_columns("translation") == before.drop_columns("translation")
    with pytest.raises(UserError, match="1 rows are fewer than 2 texts"):
        generated.planted([{}, {}], 1)


def test_texts_that_leak_a_sentence() -> None:
    pair = ("A dog runs fast.", "A fast dog is running.")
    made = {kind: plant(kind, pair, np.random.default_rng(0)) for kind in KINDS}
    assert made["exact"] == pair[0] and made["paraphrase"] == pair[1]
    assert made["re-cased"] == "“A DOG RUNS FAST”  !"
    assert " A dog runs fast " in made["inside a longer sentence"]
    changed = zip(made["one word changed"].split(), pair[0].split(), strict=True)
    assert sum(one != other for one, other in changed) == 1
