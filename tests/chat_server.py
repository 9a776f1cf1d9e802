"""A server with OpenAI's chat interface, whose answers the tests choose, and a log of the answers.

The model in a request names the server's behaviour (`BEHAVIOURS`). `python -m tests.chat_server
LOG SECONDS` prints a free port, and serves there until it is killed. An answer takes SECONDS.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Reply = tuple[int, dict[str, str], bytes | None]  # status, headers, body (None: cut the connection)


def chat(*texts: str | None, finish: str = "stop", **message: Any) -> Reply:
    choices = [
        {"index": i, "finish_reason": finish, "message": {"content": text, **message}}
        for i, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 5 * len(texts)}
    values = {"model": "tiny-2026", "choices": choices, "usage": usage}
    return 200, {}, json.dumps(values).encode()


def reworded(prompt: str, number: int = 0) -> str:
    """Return an English sentence that depends on the prompt."""
    words = prompt.splitlines()[-1].split()
    start = ("It is said that", "They say that", "We know that")[number % 3]
    return f"{start} the {' '.join(reversed(words[-6:]))} is there."


def _late(request: dict[str, Any], seen: int) -> Reply:
    texts = [reworded(request["prompt"], i) for i in range(request.get("n", 1))]
    status, headers, body = chat(*texts)
    values = json.loads(body or b"")
    values["choices"].reverse()  # in the wrong order
    return status, headers, json.dumps(values).encode()


BEHAVIOURS: dict[str, Callable[[dict[str, Any], int], Reply]] = {
    "good": lambda of, seen: chat(*(reworded(of["prompt"], i) for i in range(of.get("n", 1)))),
    "reversed": _late,
    "one": lambda of, seen: chat(reworded(of["prompt"])),
    "ten": lambda of, seen: chat(*(reworded(of["prompt"], i) for i in range(10))),
    "refuses": lambda of, seen: chat(None, refusal="I cannot."),
    "filters": lambda of, seen: chat("", finish="content_filter"),
    "empty": lambda of, seen: chat(" "),
    "cuts off": lambda of, seen: chat("A sentence that", finish="length"),
    "czech": lambda of, seen: chat("Na náměstí hrají čtyři děti s velkým psem."),
    "lines": lambda of, seen: chat("Two dogs run.\nA dog is running."),
    "echo": lambda of, seen: chat(of["prompt"]),
    "json": lambda of, seen: chat(json.dumps({"paraphrases": [reworded(of["prompt"])] * 2})),
    "huge": lambda of, seen: chat("word " * 2_000_000),
    "surrogate": lambda of, seen: chat("A dog \ud800 runs in the snow."),
    "no chat": lambda of, seen: (200, {}, b'{"choices": [{"message": 3}]}'),
    "infinite": lambda of, seen: (200, {}, b'{"choices": [], "usage": {"prompt_tokens": 1e999}}'),
    "cut": lambda of, seen: (200, {}, None),
    "500": lambda of, seen: (500, {}, b'{"error": {"message": "out of memory"}}'),
    "404": lambda of, seen: (404, {}, b'{"error": {"message": "no such model"}}'),
    "401": lambda of, seen: (401, {}, f'{{"error": {{"message": "{of["key"]}"}}}}'.encode()),
    "400": lambda of, seen: (400, {}, b'{"error": {"message": "prompt too long"}}'),
    "busy": lambda of, seen: (
        (429, {"retry-after": "0.3"}, b"{}") if seen < 2 else chat(reworded(of["prompt"]))
    ),
    "flaky": lambda of, seen: [
        (429, {}, b"{}"),
        (500, {}, b""),
        (200, {}, None),
        chat(reworded(of["prompt"])),
    ][min(seen, 3)],
}


class ChatServer:
    """The server. `answered` lists the model and the prompt of each answer with status 200."""

    def __init__(self, seconds: float = 0.0, log: Path | None = None) -> None:
        self.answered: list[tuple[str, str]] = []
        self.requests: list[dict[str, Any]] = []
        self._seconds, self._log = seconds, log
        self._seen: dict[tuple[str, str], int] = {}
        self.most = self._now = 0  # simultaneous requests

    async def start(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                _, *heads = head.decode().lower().split("\r\n")
                fields = dict(line.split(": ", 1) for line in heads if line)
                request = json.loads(await reader.readexactly(int(fields["content-length"])))
                request["key"] = fields["authorization"].removeprefix("bearer ")
                request["prompt"] = request["messages"][-1]["content"]
                self.requests.append(request)
                name = (request["model"], request["prompt"])
                seen = self._seen[name] = self._seen.get(name, -1) + 1
                self._now += 1
                self.most = max(self.most, self._now)
                await asyncio.sleep(5 if request["model"] == "slow" else self._seconds)
                self._now -= 1
                if reader.at_eof():
                    break  # the client is dead
                behaviour = BEHAVIOURS.get(request["model"], BEHAVIOURS["good"])
                status, headers, body = behaviour(request, seen)
                if body is None:
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
                    break
                headers = {"content-length": str(len(body)), **headers}
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body)
                await writer.drain()
                if status == 200:
                    self.answered.append(name)
                    if self._log:
                        with self._log.open("a") as log:
                            log.write(json.dumps([*name, time.time()]) + "\n")
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


@contextmanager
def chat_server(seconds: float = 0.0) -> Iterator[tuple[ChatServer, str]]:
    """Run a server in a thread, and yield the server and its address."""
    server, loop = ChatServer(seconds), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    port = asyncio.run_coroutine_threadsafe(server.start(), loop).result()
    try:
        yield server, f"http://127.0.0.1:{port}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _main() -> None:
    log, seconds = Path(sys.argv[1]), float(sys.argv[2])
    print(await ChatServer(seconds, log if log.name != "-" else None).start(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
