"""Deciles, and the number of rows to select from each generator."""

from collections.abc import Mapping
from fractions import Fraction

from pydantic import BaseModel


class Deciles(BaseModel):
    """The ten deciles of a score. Each list has one item per decile."""

    rows: list[int]
    lowest: list[float | None]
    highest: list[float | None]


def decile_ranks(rows: int) -> list[int]:
    """Return the ranks at which the deciles 1 to 9 of n rows begin: ⌊k·n/10⌋.

    >>> decile_ranks(25)
    [2, 5, 7, 10, 12, 15, 17, 20, 22]
    """
    return [k * rows // 10 for k in range(1, 10)]


def quotas(rows: Mapping[str, int], share: float | None, size: int | None) -> dict[str, int]:
    """Return the number of rows to select, by generator.

    The total is as large as possible, but at most `size`, and no generator has more than `share` of
    the total. Generators that stay below this share keep their proportions to each other.

    >>> quotas({"nmt": 100, "chat": 10}, 0.5, None), quotas({"nmt": 100, "chat": 10}, 0.6, 10)
    ({'nmt': 10, 'chat': 10}, {'nmt': 6, 'chat': 4})
    """
    total = sum(rows.values())
    total = total if size is None else min(total, size)
    exact = Fraction(1 if share is None else str(share))
    while True:
        cap = int(exact * total)
        most = sum(min(n, cap) for n in rows.values())
        if most >= total:
            break
        total = most  # lowers the cap
    found: dict[str, int] = {}
    free, left = dict(rows), total
    while over := [name for name, n in free.items() if n * left > cap * sum(free.values())]:
        for name in over:
            found[name], left = cap, left - cap
            del free[name]
    whole = max(sum(free.values()), 1)
    found |= {name: n * left // whole for name, n in free.items()}
    largest_first = sorted(free, key=lambda name: (-(free[name] * left % whole), name))
    for name in largest_first[: total - sum(found.values())]:
        found[name] += 1
    return {name: found[name] for name in rows}
