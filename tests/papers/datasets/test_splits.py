from pathlib import Path

import numpy as np
import pytest

from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.errors import UserError
from paraloom.papers.datasets.splits import STS_SHARES, shares, split
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
    with pytest.raises(UserError, match="from 1 to 5, those of STS from 0 to 5"):
        split([str(tmp_path / "x.tsv"), str(folder)], held_out=0.1)
