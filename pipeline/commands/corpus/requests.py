"""What generators' answers to all pairs take, extrapolated from the answers to a sample."""

from pydantic import BaseModel

from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.usage import Usage
from paraloom.pipeline.commands.run.status import duration


class Requests(BaseModel):
    """What a generator's answers to all pairs take, if its server stays as fast as it was."""

    seconds: float
    tokens_in: float
    tokens_out: float
    cost: float | None  # None without prices


def extrapolated(of: ChatGenerator, took: Usage, requests: int) -> Requests:
    """What so many requests take, at the generator's concurrency and limit."""
    each = took.seconds / took.requests / of.concurrency
    scale, prices = requests / took.requests, of.prices
    return Requests(
        seconds=requests * max(each, 60 / of.requests_per_minute if of.requests_per_minute else 0),
        tokens_in=scale * took.tokens_in,
        tokens_out=scale * took.tokens_out,
        cost=scale * took.at_prices(prices.input, prices.output) if prices else None,
    )


def in_words(of: ChatGenerator, took: Usage | None, requests: int) -> str:
    """The same in a sentence, which also says if nothing was asked or answered."""
    if not took:
        return f"{requests:,} requests, whose time is not known; `--requests 20` asks its server."
    if not took.requests:
        return "gave no answer that counts."
    found = extrapolated(of, took, requests)
    tokens = (f"{two_digits(n):,.0f}" for n in (found.tokens_in, found.tokens_out))
    time = duration(two_digits(found.seconds))
    what = f"{requests:,} requests, {time}, {' + '.join(tokens)} tokens"
    if found.cost is not None:
        what += f", cost {rate(found.cost)}"
    return f"{what}, from {took.requests} answers."


def rate(value: float) -> str:
    """Two digits of a small number, thousands of a large one."""
    return f"{two_digits(value):,.0f}" if value >= 10 else f"{value:.2g}"


def two_digits(value: float) -> float:
    """The value, rounded to two digits."""
    return float(f"{value:.2g}")
