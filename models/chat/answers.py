"""What a server answered, and the candidates that are in it."""

import json
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.usage import Usage
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
            requests=1,
            retries=self.retries,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            seconds=self.seconds,
            models=[self.model] if self.model else [],
            first=self.time,
            last=self.time,
        )


class NotInFormError(ValueError):
    """A server's answer that is none."""


def parse(body: str) -> dict[str, Any]:
    """The fields of an `Answer` in the body of a response; `NotInFormError` if there are none."""
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
        raise NotInFormError("the response is not what a chat gives") from error


def _choice(value: dict[str, Any]) -> Choice:
    message, finish = value["message"], str(value.get("finish_reason") or "")
    refused = "refused" if message.get("refusal") else ""
    refused = finish if finish == "content_filter" else refused
    text = message.get("content") or ""
    if not isinstance(text, str):
        raise TypeError("no text")
    # JSON may hold half a surrogate pair, which no file can.
    return Choice(text=text.encode(errors="replace").decode(), finish=finish, refused=refused)


class Found(NamedTuple):
    """A candidate, or the reason why there is none."""

    text: str | None
    reason: str | None


def candidates(answer: Answer, request: Request) -> list[Found]:
    """The `n` candidates in the answer to a request."""
    generator, found = request.generator, list[Found]()
    for choice in answer.choices:
        if reason := _unusable(choice):
            found.append(Found(None, reason))
        elif generator.response == "text":
            found.append(_judged(choice.text, request))
        elif (texts := _paraphrases(choice.text)) is None:
            found.append(Found(None, "not in the form: no list of paraphrases in JSON"))
        else:
            found += [_judged(text, request) for text in texts]
    if answer.error:
        return [Found(None, answer.error)] * generator.n
    lacking = generator.n - len(found)
    return found[: generator.n] + [Found(None, FEWER)] * lacking


def _unusable(choice: Choice) -> str | None:
    if choice.refused:
        return "refused" + (" (content_filter)" if choice.refused == "content_filter" else "")
    return "truncated at max_tokens" if choice.finish == "length" else None


def _paraphrases(text: str) -> list[str] | None:
    """The list in an answer in JSON, or a text as a list of one; None if it is neither."""
    try:
        found = json.loads(text)["paraphrases"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    found = [found] if isinstance(found, str) else found
    whole = isinstance(found, list) and all(isinstance(each, str) for each in found)
    return [each.encode(errors="replace").decode() for each in found] if whole and found else None


def _judged(text: str, request: Request) -> Found:
    text = text.strip()
    lines = {line.strip() for line in request.prompt.splitlines()} - {*request.given}
    if not text:
        reason = "empty answer"
    elif len(text) > _LONGEST:
        reason = f"answer of more than {_LONGEST:,} characters"
    elif request.prompt in text or text in lines:
        reason = "copy of the prompt"
    elif control := find_control(text):
        reason = f"{control} in answer"
    else:
        return Found(text, None)
    return Found(None, reason)
