"""Requests to a chat server, its answers, and the candidates in an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.wrapping import is_refusal, unwrapped
from paraloom.models.text.cleaning import find_control


class Request(NamedTuple):
    """A prompt for a generator. `given` contains the pair's sentences that the prompt shows."""

    generator: ChatGenerator
    prompt: str
    given: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Digest of the generator's name and parameters and of the prompt.

        The digest does not depend on the server's address, which may change.
        """
        of = self.generator
        values = json.dumps([of.name, of.parameters(), self.prompt], sort_keys=True)
        return sha256(values.encode()).hexdigest()[:32]


FEWER = "the server gave fewer candidates than n"
_LONGEST = 20_000  # characters of a candidate
_OBJECT = re.compile(r"[^{]*({.*})[^}]*", re.DOTALL)  # a JSON object within other text


class Usage(BaseModel):
    """Totals over requests. A resumed run counts each request once."""

    model_config = ConfigDict(extra="allow")

    requests: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0  # sum of the response times
    models: list[str] = []  # the models' names on the server
    first: float = 0.0  # time of the first answer, in seconds since the epoch
    last: float = 0.0  # time of the last answer

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
        """Return the cost at prices per million tokens, or None without prices or token counts."""
        if not prices or not (self.tokens_in or self.tokens_out):
            return None
        return (self.tokens_in * prices["input"] + self.tokens_out * prices["output"]) / 1e6


class Choice(BaseModel):
    """One choice of a response. `refused` is not empty if the model or a filter refused."""

    text: str = ""
    finish: str = ""
    refused: str = ""


class Answer(BaseModel):
    """A stored answer to a request. If there is no answer, `error` contains the reason."""

    model_config = ConfigDict(frozen=True)

    key: str
    choices: list[Choice] = []
    error: str = ""
    model: str = ""  # the model's name on the server
    tokens_in: int = 0
    tokens_out: int = 0
    retries: int = 0
    seconds: float = 0.0  # duration of the last attempt
    time: float = 0.0  # time of arrival, in seconds since the epoch

    @property
    def usage(self) -> Usage:
        """Usage of this answer. `requests` is 0 if the answer is an error."""
        same = self.model_dump(include={"retries", "tokens_in", "tokens_out", "seconds"})
        models = [self.model] if self.model else []
        requests = int(not self.error)
        return Usage(requests=requests, models=models, first=self.time, last=self.time, **same)


def parse(body: str) -> dict[str, Any]:
    """Return the fields of `Answer` that a response body contains, or raise a ValueError."""
    try:
        values = json.loads(body)
        usage = values.get("usage") or {}
        choices = sorted(values["choices"], key=lambda choice: choice.get("index") or 0)
        return {
            "choices": [_choice(choice) for choice in choices],
            "model": str(values.get("model") or ""),
            "tokens_in": int(usage.get("prompt_tokens") or 0),
            "tokens_out": int(usage.get("completion_tokens") or 0),
        }
    except Exception as error:  # for example, a value is missing, infinite or of another type
        raise ValueError("the response is no chat completion") from error


def _choice(value: dict[str, Any]) -> Choice:
    message, finish = value["message"], str(value.get("finish_reason") or "")
    refused = "refused" if message.get("refusal") else ""
    refused = finish if finish == "content_filter" else refused
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("no text")
    return Choice(text=_encodable(text), finish=finish, refused=refused)


def _encodable(text: str) -> str:
    """Replace unpaired surrogates, which are valid in JSON but not in UTF-8."""
    return text.encode(errors="replace").decode()


class Found(NamedTuple):
    """A candidate, or the reason why there is no candidate."""

    text: str | None
    reason: str | None


def candidates(answer: Answer, request: Request) -> list[Found]:
    """Return `generator.n` results, each a candidate or the reason why no candidate was found."""
    n = request.generator.n
    if answer.error:
        return [Found(None, answer.error)] * n
    found = [each for choice in answer.choices for each in _found(choice, request)]
    return (found + [Found(None, FEWER)] * n)[:n]


def _found(choice: Choice, request: Request) -> list[Found]:
    if choice.refused:
        more = " (content_filter)" if choice.refused == "content_filter" else ""
        return [Found(None, f"refused{more}")]
    if choice.finish == "length":
        return [Found(None, "truncated at max_tokens")]
    texts = [choice.text]
    if request.generator.response == "json":
        text = choice.text
        if not text.lstrip().startswith("{"):  # skip the reasoning, which may contain braces
            text = text.rpartition("</think>")[2]
        try:
            found = json.loads(_OBJECT.sub(r"\1", text))["paraphrases"]
            texts = [_encodable(text) for text in ([found] if isinstance(found, str) else found[:])]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return [Found(None, "no list of paraphrases in JSON")]
    return [_judged(each, request) for text in texts for each in unwrapped(text, request.given)]


def _judged(text: str, request: Request) -> Found:
    prompt, given = request.prompt, {*request.given}  # a prompt may be the sentence alone
    lines = {line.strip() for line in prompt.splitlines()} - given
    if not text:
        reason = "empty answer"
    elif len(text) > _LONGEST:
        reason = f"answer of more than {_LONGEST:,} characters"
    elif (prompt in text and prompt not in given) or text in lines:
        reason = "copy of the prompt"
    elif is_refusal(text, request.given):
        reason = "refused (in words)"
    elif control := find_control(text):
        reason = f"{control} in answer"
    else:
        return Found(text, None)
    return Found(None, reason)
