"""A unit is made once for its key, with whatever else its element has."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraloom.beam_jobs.io.shards import Receipt, Unit, units, write_shard
from paraloom.beam_jobs.transforms.unit_dofn import UnitDoFn

TABLE = pa.table({"n": [1, 2, 3]})
NONE = pa.table({"reason": pa.array([], pa.string())})


@dataclass(eq=False)
class Made(UnitDoFn):
    """Writes the rows of its units, and remembers what it was given."""

    given: list[tuple[Any, ...]] = field(default_factory=list)

    def make(self, unit: Unit, *more: Any) -> Receipt:
        self.given.append((unit.name, *more))
        return self.commit(unit, unit.rows, [(unit.name, TABLE, NONE)])


def test_a_finished_unit_is_not_made_again(tmp_path: Path) -> None:
    (unit,) = units([write_shard(f"{tmp_path}/in/part-0.parquet", TABLE)], "k")
    dofn = Made(f"{tmp_path}/out")
    (first,) = dofn.process(unit)
    (again,) = dofn.process(unit)
    assert again == first and dofn.given == [("part-0",)]
    (changed,) = dofn.process(replace(unit, key="another"))
    assert (changed.key, len(dofn.given)) == ("another", 2)
    Path(first.shards[0].path).write_bytes(b"damaged")
    (mended,) = dofn.process(replace(unit, key="another"))
    assert (mended.shards, len(dofn.given)) == (first.shards, 3)
