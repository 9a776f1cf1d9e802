"""The clients of servers behind OpenAI's chat interface.

Requests are retried here and not by the library: the pauses are those that the server's headers
ask for, and all requests of a process heed them.
"""

import asyncio
import math
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import Any

from paraloom.models.chat.answers import Answer, NotInFormError, Request, parse
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.errors import UserError, one_line

ATTEMPTS = 6
"""Attempts at a request, between which nothing else was answered."""
FIRST_PAUSE = 1.0  # seconds; it doubles with every attempt
LONGEST_PAUSE = 300.0
_LARGEST = 4 << 20  # bytes of a response
_STOPS = {
    401: "takes no key of {key}",
    403: "denies access with the key of {key}",
    404: "knows no model {model}, or its interface is not at base_url",
}
_AGAIN = (408, 409, 425, 429)  # and 5xx
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


class Clients:
    """Asks several models, in an event loop of a thread of its own; the threads of a process share
    it, with the connections and the limits."""

    def __init__(self, generators: Iterable[ChatGenerator]) -> None:
        self._clients = {of.name: _Client(of) for of in generators}
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()

    def ask(self, requests: Iterable[Request], keep: Callable[[Answer], None]) -> None:
        """Send all requests; `keep` gets every answer when it comes. The first error ends all."""
        work: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            work[request.generator.name].append(request)

        async def asked() -> None:
            async with asyncio.TaskGroup() as group:
                for name, some in work.items():
                    client, waiting = self._clients[name], iter(some)
                    for _ in range(client.generator.concurrency):
                        group.create_task(client.ask_all(waiting, keep))

        future = asyncio.run_coroutine_threadsafe(asked(), self._loop)
        try:
            future.result()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            future.cancel()  # if the waiting is interrupted


class _Client:
    """Asks one model."""

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
        self._distance = 60.0 / (generator.requests_per_minute or math.inf)
        self._next = 0.0  # when the next request may begin
        self._answered = 0.0  # when the last one was answered

    async def ask_all(self, waiting: Iterator[Request], keep: Callable[[Answer], None]) -> None:
        """Send requests one after another."""
        for request in waiting:
            async with self._free:
                answer = await self._ask(request.key, request.prompt)
            keep(answer)

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
            return 0, {}, self._hidden(f"{type(cause).__name__}: {one_line(str(cause))}")

    def _said(self, error: Any) -> str:
        """What a server says of an error."""
        body = error.body if isinstance(error.body, dict) else {}
        return self._hidden(one_line(str(body.get("message") or error.response.reason_phrase)))

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
    told = {
        name: pause
        for name, value in headers.items()
        if name.startswith(("retry-after", "x-ratelimit-reset"))
        and (pause := _seconds(value.strip())) is not None
    }
    if "retry-after-ms" in told:
        return told["retry-after-ms"] / 1000
    return told.get("retry-after", max(told.values(), default=None))


def _seconds(value: str) -> float | None:
    """Seconds of a number, of a span such as `6m0s`, or to a date or a time since the epoch."""
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(value))
    if not re.fullmatch(f"(?:{_PARTS.pattern})+", value):
        try:
            seconds = parsedate_to_datetime(value).timestamp()
        except ValueError:
            return None
    return max(seconds - time.time(), 0.0) if seconds > 1e9 else seconds
