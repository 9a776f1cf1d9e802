"""How many rows of each generator a corpus may have, so that none has more than its share."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction


def quotas(rows: Mapping[str, int], share: float | None, size: int | None) -> dict[str, int]:
    """The most rows of each kind, in all as many as can be, such that no kind has more than `share`
    of them, and there are at most `size`.

    >>> quotas({"nmt": 100, "chat": 10}, 0.5, None), quotas({"nmt": 100, "chat": 10}, 0.5, 8)
    ({'nmt': 10, 'chat': 10}, {'nmt': 4, 'chat': 4})
    """
    total = sum(rows.values())
    total = total if size is None else min(total, size)
    exact = Fraction(1 if share is None else str(share))
    caps = dict(rows)
    while True:  # the largest total that the kinds can make up; it only falls
        caps = {name: min(count, int(exact * total)) for name, count in rows.items()}
        if (sum(caps.values())) >= total:
            break
        total = sum(caps.values())
    return _scaled(caps, total)


def _scaled(caps: Mapping[str, int], total: int) -> dict[str, int]:
    """Whole numbers in proportion to `caps`, and not above them, that add up to `total`."""
    whole = max(sum(caps.values()), 1)
    found = {name: cap * total // whole for name, cap in caps.items()}
    lost = sorted(caps, key=lambda name: (-(caps[name] * total % whole), name))
    for name in lost[: total - sum(found.values())]:
        found[name] += 1
    return found
