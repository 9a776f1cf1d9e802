"""Usage of generators: requests, tokens, time, cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict

SERVED = object()
ServedName = Annotated[str, SERVED]
"""A model as its server names it; releases shorten a path to its last part."""


class Usage(BaseModel):
    """Counts over answered requests, each counted once, however often a run was resumed."""

    model_config = ConfigDict(extra="allow")

    requests: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0  # sum of the response times
    models: list[ServedName] = []  # the server's names
    first: float = 0.0  # times of the first and last answer, in seconds since the epoch
    last: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        times = [time for time in (self.first, other.first) if time]
        return Usage(
            requests=self.requests + other.requests,
            retries=self.retries + other.retries,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            seconds=round(self.seconds + other.seconds, 3),
            models=sorted({*self.models, *other.models}),
            first=min(times, default=0.0),
            last=max(self.last, other.last),
        )

    def at_prices(self, prices: Mapping[str, float] | None) -> float | None:
        """Cost at prices per million tokens, `input` and `output`; None without prices or token
        counts."""
        if not prices or not (self.tokens_in or self.tokens_out):
            return None
        return (self.tokens_in * prices["input"] + self.tokens_out * prices["output"]) / 1e6
