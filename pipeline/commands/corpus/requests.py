"""What generators' answers to all pairs take, extrapolated from the answers to a sample."""

from collections.abc import Sequence

from pydantic import BaseModel

from paraloom.models.chat.answers import Answer
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.usage import Usage
from paraloom.pipeline.commands.run.status import duration


class Requests(BaseModel):
    """What a generator's answers to all pairs take, if its server stays as fast as it was."""

    answers: int  # of the sample that the others follow from
    seconds: float
    tokens_in: float
    tokens_out: float
    cost: float | None  # None without prices or counts of tokens
    size: float  # of the answers that are kept, in bytes


def extrapolated(of: ChatGenerator, answers: Sequence[Answer], requests: int) -> Requests | None:
    """What so many requests take, at the generator's concurrency and limit; None if nothing in the
    sample was answered."""
    took = sum((answer.usage for answer in answers), Usage())
    if not took.requests:
        return None
    cost = took.at_prices(of.prices.model_dump() if of.prices else None)
    scale = requests / took.requests
    least = 60 / of.requests_per_minute if of.requests_per_minute else 0
    return Requests(
        answers=took.requests,
        seconds=requests * max(took.seconds / took.requests / of.concurrency, least),
        tokens_in=scale * took.tokens_in,
        tokens_out=scale * took.tokens_out,
        cost=None if cost is None else scale * cost,
        size=scale * sum(len(of.model_dump_json(exclude_defaults=True)) + 1 for of in answers),
    )


def in_words(found: Requests, requests: int) -> str:
    """The same in a sentence."""
    tokens = (f"{two_digits(n):,.0f}" for n in (found.tokens_in, found.tokens_out))
    time = duration(two_digits(found.seconds))
    what = f"{requests:,} requests, {time}, {' + '.join(tokens)} tokens"
    if found.cost is not None:
        what += f", cost {rate(found.cost)}"
    return f"{what}, from {found.answers} answers."


def rate(value: float) -> str:
    """Two digits of a small number, thousands of a large one."""
    return f"{two_digits(value):,.0f}" if value >= 10 else f"{value:.2g}"


def two_digits(value: float) -> float:
    """The value, rounded to two digits."""
    return float(f"{value:.2g}")
