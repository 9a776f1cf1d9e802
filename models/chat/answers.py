"""What a server answered, and the candidates that are in it."""

import json
import re
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.usage import Usage
from paraloom.models.chat.wrapping import is_refusal, unwrapped
from paraloom.models.text.controls import find_control


class Request(NamedTuple):
    """What a generator is asked, and the sentences in the prompt."""

    generator: ChatGenerator
    prompt: str
    given: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The digest of all that an answer depends on.

        It has the generator's name rather than its address: servers move.
        """
        of = self.generator
        values = json.dumps([of.name, of.parameters(), self.prompt], sort_keys=True)
        return sha256(values.encode()).hexdigest()[:32]


FEWER = "the server gave fewer answers"
_LONGEST = 20_000  # characters of a candidate
_OBJECT = re.compile(r"[^{]*({.*})[^}]*", re.DOTALL)  # JSON, whatever stands around it


class Choice(BaseModel):
    """One of the answers to a request; `refused` has a refusal's or a filter's name."""

    text: str = ""
    finish: str = ""
    refused: str = ""


class Answer(BaseModel):
    """A request that was answered, as it is kept; `error` is of a request that cannot be."""

    model_config = ConfigDict(frozen=True)

    key: str
    choices: list[Choice] = []
    error: str = ""
    model: str = ""  # as the server names it
    tokens_in: int = 0
    tokens_out: int = 0
    retries: int = 0
    seconds: float = 0.0  # of the attempt that was answered
    time: float = 0.0  # since the epoch

    @property
    def usage(self) -> Usage:
        """What it took."""
        return Usage(
            requests=int(not self.error),
            retries=self.retries,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            seconds=self.seconds,
            models=[self.model] if self.model else [],
            first=self.time,
            last=self.time,
        )


def parse(body: str) -> dict[str, Any]:
    """The fields of an `Answer` in the body of a response; ValueError if there are none."""
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("the response is not what a chat gives") from error


def _choice(value: dict[str, Any]) -> Choice:
    message, finish = value["message"], str(value.get("finish_reason") or "")
    refused = "refused" if message.get("refusal") else ""
    refused = finish if finish == "content_filter" else refused
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("no text")
    return Choice(text=_encodable(text), finish=finish, refused=refused)


def _encodable(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON may hold, but no file."""
    return text.encode(errors="replace").decode()


class Found(NamedTuple):
    """A candidate, or the reason why there is none."""

    text: str | None
    reason: str | None


def candidates(answer: Answer, request: Request) -> list[Found]:
    """The `n` candidates in the answer to a request."""
    n = request.generator.n
    if answer.error:
        return [Found(None, answer.error)] * n
    found = [each for choice in answer.choices for each in _found(choice, request)]
    return (found + [Found(None, FEWER)] * n)[:n]


def _found(choice: Choice, request: Request) -> list[Found]:
    """The candidates in one choice, or why there is none."""
    if choice.refused:
        more = " (content_filter)" if choice.refused == "content_filter" else ""
        return [Found(None, f"refused{more}")]
    if choice.finish == "length":
        return [Found(None, "truncated at max_tokens")]
    texts = [choice.text]
    if request.generator.response == "json":
        try:
            found = json.loads(_OBJECT.sub(r"\1", choice.text))["paraphrases"]
            texts = [_encodable(text) for text in ([found] if isinstance(found, str) else found[:])]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return [Found(None, "not in the form: no list of paraphrases in JSON")]
    return [_judged(each, request) for text in texts for each in unwrapped(text, request.given)]


def _judged(text: str, request: Request) -> Found:
    """A sentence of an answer, or why it is none."""
    lines = {line.strip() for line in request.prompt.splitlines()} - {*request.given}
    if not text:
        reason = "empty answer"
    elif len(text) > _LONGEST:
        reason = f"answer of more than {_LONGEST:,} characters"
    elif request.prompt in text or text in lines:
        reason = "copy of the prompt"
    elif is_refusal(text, request.given):
        reason = "refused (in words)"
    elif control := find_control(text):
        reason = f"{control} in answer"
    else:
        return Found(text, None)
    return Found(None, reason)
