"""The client of a server behind OpenAI's chat interface.

Requests are retried here and not by the library: the pauses are those that the server's headers
ask for, and all requests of a process heed them.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from hashlib import sha256
from json import dumps
from threading import Thread
from typing import Any, TypeVar

from paraloom.models.chat.answers import Answer, NotInFormError, Request, parse
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.errors import UserError

ATTEMPTS = 6
"""Attempts at a request, between which nothing else was answered."""
FIRST_PAUSE = 1.0  # seconds; it doubles with every attempt
LONGEST_PAUSE = 300.0
_LARGEST = 4 << 20  # bytes of a response
_STOPS = {
    401: "takes no key of {key}",
    403: "denies access with the key of {key}",
    404: "knows no model {model}, or base_url is not that of its interface",
}
_AGAIN = (408, 409, 425, 429)  # and 5xx
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}

Result = TypeVar("Result")


class EventLoop:
    """An event loop in a thread of its own, which the threads of a process share."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine; it is cancelled if the waiting is interrupted."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()


class ChatClient:
    """Asks one model; all threads of a process share its connections and its limits."""

    def __init__(self, generator: ChatGenerator) -> None:
        from openai import AsyncOpenAI

        self.generator = generator
        self._client: Any = AsyncOpenAI(
            api_key=os.environ.get(generator.api_key_env) or "none",
            base_url=generator.base_url,
            timeout=generator.timeout,
            max_retries=0,
        )
        self._free = asyncio.Semaphore(generator.concurrency)
        per_minute = generator.requests_per_minute
        self._distance = 60.0 / per_minute if per_minute else 0.0
        self._next = 0.0  # when the next request may begin
        self._answered = 0.0  # when the last one was answered

    def request(self, prompt: str, given: tuple[str, ...] = ()) -> Request:
        """The request with a prompt that has the sentences `given`.

        Its key has the generator's name rather than its address: servers move.
        """
        of = self.generator
        values = dumps([of.name, of.parameters(), prompt], sort_keys=True)
        return Request(sha256(values.encode()).hexdigest()[:32], prompt, given)

    async def ask_all(self, requests: Iterable[Request], keep: Callable[[Answer], None]) -> None:
        """Send all requests; `keep` gets every answer when it comes. An error ends all."""
        waiting = iter(requests)

        async def work() -> None:
            for request in waiting:
                async with self._free:
                    answer = await self._ask(request.key, request.prompt)
                keep(answer)

        workers = [asyncio.create_task(work()) for _ in range(self.generator.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _ask(self, key: str, prompt: str) -> Answer:
        """An answer, after as many attempts as it takes."""
        random_pause, failures, retries, since = random.Random(key), 0, 0, time.monotonic()
        while True:
            await self._turn()
            began = time.monotonic()
            status, headers, body = await self._send(prompt)
            taken = round(time.monotonic() - began, 3)
            more: dict[str, Any] = {"key": key, "retries": retries, "seconds": taken}
            more["time"] = round(time.time(), 3)
            if status == 200:
                try:
                    answer = Answer(**parse(body), **more)
                    self._answered = time.monotonic()
                    return answer
                except NotInFormError as error:
                    body = str(error)
            reason = body if status in (0, 200) else f"HTTP {status}: {body}"
            if status in _STOPS:
                self._stop(_STOPS[status])
            if 400 <= status < 500 and status not in _AGAIN:
                return Answer(error=f"no answer: {reason}", **more)
            failures, retries = failures + 1, retries + 1
            if failures >= ATTEMPTS:
                if self._answered < since:
                    why = "is it running, and is base_url right?" if not status else "is it well?"
                    self._stop(f"gives no answer in {ATTEMPTS} attempts ({reason}); {why}")
                if status != 429:  # others get answers: this one has none
                    return Answer(error=f"no answer: {reason}", **more)
                failures, since = 0, time.monotonic()
            told = asked_pause(headers)
            pause = FIRST_PAUSE * 2 ** (failures - 1) * (1 + random_pause.random())
            pause = min(pause if told is None else told, LONGEST_PAUSE)
            if status == 429 and told is not None:
                self._next = max(self._next, time.monotonic() + pause)  # for all requests
            await asyncio.sleep(pause)

    async def _turn(self) -> None:
        """Wait until a request may begin."""
        now = time.monotonic()
        begin = max(now, self._next)
        self._next = begin + self._distance
        await asyncio.sleep(begin - now)

    async def _send(self, prompt: str) -> tuple[int, Mapping[str, str], str]:
        """Send a request once: the status (0 without a connection), headers, body or reason."""
        import openai

        messages = [{"role": "user", "content": prompt}]
        sending = self._client.chat.completions.with_streaming_response
        try:
            async with asyncio.timeout(self.generator.timeout):
                async with sending.create(
                    messages=messages,
                    **self.generator.parameters(),
                ) as response:
                    parts, size = [], 0
                    async for part in response.iter_bytes():
                        parts.append(part)
                        if (size := size + len(part)) > _LARGEST:
                            return 413, {}, f"a response of more than {_LARGEST:,} bytes"
                    body = b"".join(parts).decode(errors="replace")
                    return 200, response.headers, self._hidden(body)
        except openai.APIStatusError as error:
            return error.status_code, error.response.headers, self._said(error)
        except (TimeoutError, openai.APITimeoutError):
            return 0, {}, f"no response within {self.generator.timeout:g} s"
        except Exception as error:  # a connection that is refused or cut, of openai or of httpx
            cause = error.__cause__ or error
            return 0, {}, self._hidden(f"{type(cause).__name__}: {_line(str(cause))}")

    def _said(self, error: Any) -> str:
        """What a server says of an error."""
        body = error.body if isinstance(error.body, dict) else {}
        return self._hidden(_line(str(body.get("message") or error.response.reason_phrase)))

    def _hidden(self, text: str) -> str:
        """A text without the key, which a server may repeat."""
        key: str = self._client.api_key
        return text.replace(key, "…") if len(key) > 4 else text

    def _stop(self, what: str) -> None:
        of = self.generator
        said = what.format(key=of.api_key_env, model=of.model) if "{" in what else what
        raise UserError(f"generators: {of.name}: the server at {of.base_url} {said}")


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server's headers ask to wait, or None.

    `retry-after-ms`, `retry-after` (seconds or a date), else the longest `x-ratelimit-reset…`.

    >>> asked_pause({"retry-after": "2"}), asked_pause({"x-ratelimit-reset-tokens": "1m30s"})
    (2.0, 90.0)
    >>> asked_pause({"retry-after": "soon"})
    """
    for name, unit in (("retry-after-ms", "ms"), ("retry-after", "s")):
        value = headers.get(name, "").strip()
        if found := re.fullmatch(r"\d+(\.\d+)?", value):
            return float(found[0]) * _SECONDS[unit]
        if value and name == "retry-after":
            try:
                return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
            except ValueError:
                pass
    resets = [value for name, value in headers.items() if name.startswith("x-ratelimit-reset")]
    return max((pause for value in resets if (pause := _span(value)) is not None), default=None)


def _span(value: str) -> float | None:
    """Seconds of a time span such as `6m0s`, or to a time since the epoch."""
    if not re.fullmatch(f"(?:{_PARTS.pattern})+", value.strip()):
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(value))
    return max(seconds - time.time(), 0.0) if seconds > 1e9 else seconds


def ask_together(
    loop: EventLoop,
    work: Sequence[tuple[ChatClient, Iterable[Request]]],
    keep: Callable[[Answer], None],
) -> None:
    """Ask several models at once; the first error ends all."""

    async def asked() -> None:
        async with asyncio.TaskGroup() as group:
            for client, requests in work:
                group.create_task(client.ask_all(requests, keep))

    try:
        loop.run(asked())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
