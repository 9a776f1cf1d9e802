"""Clients of servers with OpenAI's chat interface.

If a server limits the rate of requests (HTTP 429) and names a pause, all requests of the generator
wait. The `openai` library would delay only one request, so this module retries requests itself.
"""

import asyncio
import itertools
import math
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from threading import Thread
from typing import Any, NoReturn

from paraloom.models.chat.answers import Answer, Request, parse
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.errors import UserError, one_line

# Maximum number of attempts for a request. If all fail, and the server answered no other request
# meanwhile, the job ends. If the server answered other requests, only this request fails. But if
# its last attempt ended with HTTP 429, the request gets ATTEMPTS further attempts.
ATTEMPTS = 6
FIRST_PAUSE = 1.0  # seconds, doubled after each attempt
LONGEST_PAUSE = 300.0
_LARGEST = 4 << 20  # bytes of a response
_STOPS = {
    401: "rejects the key of {key}",
    403: "denies access with the key of {key}",
    404: "has no model {model}, or base_url is wrong",
}
_AGAIN = (408, 409, 425, 429)  # other 4xx errors are not retried


class Clients:
    """Connections to several models, with an event loop in a separate thread.

    All threads of a process share one `Clients` object, because the limits of requests apply to the
    whole process.
    """

    def __init__(self, generators: Iterable[ChatGenerator]) -> None:
        self._clients = {of.name: _Client(of) for of in generators}
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()

    def ask(self, requests: Iterable[Request], keep: Callable[[Answer], None]) -> None:
        """Send requests. The event loop's thread calls `keep` for each answer.

        The first error is raised, and cancels the other requests.
        """
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
            future.cancel()  # after an interrupt, such as Ctrl-C


class _Client:
    def __init__(self, generator: ChatGenerator) -> None:
        from openai import AsyncOpenAI

        self.generator = generator
        self._client: Any = AsyncOpenAI(
            api_key=_key(generator),
            base_url=generator.base_url,
            timeout=generator.timeout,
            max_retries=0,
        )
        self._free = asyncio.Semaphore(generator.concurrency)
        self._distance = 60.0 / (generator.requests_per_minute or math.inf)
        self._next = 0.0  # earliest start of the next request
        self._answered = 0.0  # time of the last answer

    async def ask_all(self, waiting: Iterator[Request], keep: Callable[[Answer], None]) -> None:
        for request in waiting:
            async with self._free:
                answer = await self._ask(request.key, request.prompt)
            keep(answer)

    async def _ask(self, key: str, prompt: str) -> Answer:
        """Send a request, and retry it after errors. The answer may have an `error`."""
        of, random_pause, failures, since = self.generator, random.Random(key), 0, time.monotonic()
        for retries in itertools.count():
            await self._turn()
            began = time.monotonic()
            status, headers, body = await self._send(prompt)
            more: dict[str, Any] = {"key": key, "retries": retries, "time": round(time.time(), 3)}
            more["seconds"] = round(time.monotonic() - began, 3)
            if status == 200:
                try:
                    answer = Answer(**parse(body), **more)
                    self._answered = time.monotonic()
                    return answer
                except ValueError as error:
                    status, body = 0, one_line(error)
            reason = f"HTTP {status}: {body}" if status else body
            if status in _STOPS:
                self._stop(_STOPS[status].format(key=of.api_key_env, model=of.model))
            if 400 <= status < 500 and status not in _AGAIN:
                break
            failures += 1
            if failures >= ATTEMPTS:
                if self._answered < since:
                    why = "is it running, and is base_url right?"
                    self._stop(f"gives no answer in {ATTEMPTS} attempts ({reason}); {why}")
                if status != 429:  # other requests succeed, so only this request fails
                    break
                failures, since = 0, time.monotonic()
            told = asked_pause(headers)
            pause = FIRST_PAUSE * 2 ** (failures - 1) * (1 + random_pause.random())
            pause = min(told or pause, LONGEST_PAUSE)
            if status == 429 and told:
                self._next = max(self._next, time.monotonic() + pause)  # delays all requests
            await asyncio.sleep(pause)
        return Answer(error=f"no answer: {reason}", **more)

    async def _turn(self) -> None:
        now = time.monotonic()
        begin = max(now, self._next)
        self._next = begin + self._distance
        await asyncio.sleep(begin - now)

    async def _send(self, prompt: str) -> tuple[int, Mapping[str, str], str]:
        """Send a request once. Return the HTTP status, the headers, and the body or an error
        message. The status is 0 if there is no response."""
        import openai

        messages = [{"role": "user", "content": prompt}]
        sending = self._client.chat.completions.with_raw_response
        try:
            async with asyncio.timeout(self.generator.timeout):
                response = await sending.create(messages=messages, **self.generator.parameters())
        except openai.APIStatusError as error:
            said = error.body.get("message") if isinstance(error.body, dict) else None
            reason = self._hidden(one_line(said or error.response.reason_phrase))
            return error.status_code, error.response.headers, reason
        except (TimeoutError, openai.APITimeoutError):
            return 0, {}, f"no response within {self.generator.timeout:g} s"
        except Exception as error:  # from openai or httpx, on a failed connection
            cause = error.__cause__ or error
            return 0, {}, self._hidden(f"{type(cause).__name__}: {one_line(str(cause))}")
        if len(response.content) > _LARGEST:
            return 413, {}, f"a response of more than {_LARGEST:,} bytes"
        return 200, response.headers, response.text

    def _hidden(self, text: str) -> str:
        """Remove the API key from an error message."""
        key: str = self._client.api_key
        return text.replace(key, "…") if len(key) > 4 else text

    def _stop(self, what: str) -> NoReturn:
        of = self.generator
        raise UserError(f"generators: {of.name}: the server at {of.base_url} {what}")


def _key(of: ChatGenerator) -> str:
    key = os.environ.get(of.api_key_env, "").strip()
    if " " in key or not (key.isascii() and key.isprintable()):
        raise UserError(
            f"generators: {of.name}: {of.api_key_env} has a character that is invalid in a key"
        )
    return key or "none"


def asked_pause(headers: Mapping[str, str]) -> float:
    """Return the pause in seconds that a server's headers ask for, or 0.

    >>> asked_pause({"retry-after": "2"}), asked_pause({"retry-after-ms": "1500"})
    (2.0, 1.5)
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) / unit)
    with suppress(KeyError, ValueError):
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    return 0.0
