"""What the automatic choice of deciles leaves in the manifest (stage `choice`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What training on each decile gave on the labelled sample (ParaNMT, section 6.3, Table 4).

    Attributes:
        scores: scorer → decile (0 lowest) → Pearson × 100, one a seed.
        random: the same for a random sample of the same size, one a seed.
        chosen_scorer, chosen_deciles: what was chosen.
    """

    scores: dict[str, dict[int, list[float]]]
    random: list[float]
    chosen_scorer: str
    chosen_deciles: tuple[int, ...]

    @classmethod
    def from_json(cls, account: dict[str, Any]) -> Choice:
        """From the account of the stage.

        `{"scores": {scorer: {decile: [score per seed]}}, "random": [score per seed],
        "chosen": {"scorer": …, "deciles": […]}}`; JSON has the deciles as text.
        """
        return cls(
            scores={
                scorer: {int(decile): list(values) for decile, values in deciles.items()}
                for scorer, deciles in account["scores"].items()
            },
            random=list(account.get("random", [])),
            chosen_scorer=account["chosen"]["scorer"],
            chosen_deciles=tuple(account["chosen"]["deciles"]),
        )
