"""The client against a server that misbehaves."""

import asyncio
import time
from typing import Any
from unittest.mock import AsyncMock

import pytest

from paraloom.models.chat import client as chat_client
from paraloom.models.chat.answers import Answer, Choice, Found, Request, Usage, candidates
from paraloom.models.chat.client import Clients, asked_pause
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.errors import UserError
from tests.chat_server import ChatServer, chat_server, reworded
from tests.run_helpers import Patch, needs

pytestmark = needs("openai")
PROMPTS = [f"Reword:\na dog number {i} runs in the snow" for i in range(12)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: Patch) -> None:
    monkeypatch.setattr(chat_client, "FIRST_PAUSE", 0.005)


def ask(
    model: str, prompts: list[str] = PROMPTS, *, address: str = "", **options: Any
) -> tuple[ChatServer, dict[str, Answer]]:
    """The server afterwards, and the answers by prompt."""
    with chat_server(options.pop("server_seconds", 0.0)) as (server, url):
        where = address or url
        generator = ChatGenerator(kind="chat", name="test", base_url=where, model=model, **options)
        found: dict[str, Answer] = {}
        requests = {of.key: of for of in (Request(generator, prompt) for prompt in prompts)}

        def keep(answer: Answer) -> None:
            found[requests[answer.key].prompt] = answer

        Clients([generator]).ask(requests.values(), keep)
    return server, found


def texts(model: str, **options: Any) -> list[Found]:
    """What the answer to one prompt gives: texts and reasons."""
    _, found = ask(model, PROMPTS[:1], **options)
    generator = ChatGenerator(kind="chat", name="x", base_url="http://h", model="m", **options)
    return candidates(found[PROMPTS[0]], Request(generator, PROMPTS[0]))


def test_every_prompt_gets_the_answer_to_it() -> None:
    server, found = ask("good")
    assert {p: a.choices[0].text for p, a in found.items()} == {p: reworded(p) for p in PROMPTS}
    assert sorted(server.answered) == sorted(("good", p) for p in PROMPTS)
    (first, *_) = found.values()
    assert (first.tokens_in, first.tokens_out, first.model) == (10, 5, "tiny-2026")


def test_choices_are_in_order_and_as_many_as_were_asked_for() -> None:
    said = [reworded(PROMPTS[0], i) for i in range(3)]
    assert [text for text, _ in texts("reversed", n=3)] == said
    assert [text for text, _ in texts("ten", n=3)] == said
    assert texts("one", n=2)[1] == (None, "the server gave fewer candidates than n")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ("refuses", "refused"), ("filters", "refused (content_filter)"), ("empty", "empty answer"),
        ("cuts off", "truncated at max_tokens"), ("lines", "control character U+000A in answer"),
        ("echo", "copy of the prompt"), ("400", "no answer: HTTP 400: prompt too long"),
        ("huge", "no answer: HTTP 413: a response of more than 4,194,304 bytes"),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_candidate_has_a_reason(model: str, reason: str) -> None:
    assert texts(model) == [(None, reason)]


def test_a_prompt_that_is_the_sentence_alone_is_no_copy() -> None:
    """As for a model that was trained to paraphrase. An answer may contain a short sentence."""
    generator = ChatGenerator(kind="chat", name="x", base_url="http://h", model="m")
    answer = Answer(key="key", choices=[Choice(text="Yes, of course it is.")])
    found = candidates(answer, Request(generator, "Yes", ("Ano", "Yes")))
    assert found == [("Yes, of course it is.", None)]


def test_json_and_half_a_surrogate_pair_become_text() -> None:
    assert texts("surrogate") == [("A dog ? runs in the snow.", None)]
    assert texts("json", response="json", n=2) == [(reworded(PROMPTS[0]), None)] * 2
    reason = "no list of paraphrases in JSON"
    assert texts("good", response="json", n=1) == [(None, reason)]


def test_faults_that_pass_are_retried() -> None:
    server, found = ask("flaky")
    assert {answer.choices[0].text for answer in found.values()} == {*map(reworded, PROMPTS)}
    assert {answer.retries for answer in found.values()} == {3}
    assert len(server.requests) == 4 * len(PROMPTS)


def test_a_busy_server_is_asked_after_the_time_that_it_names() -> None:
    started = time.monotonic()
    _, found = ask("busy", PROMPTS[:1])
    assert found[PROMPTS[0]].retries == 2
    assert time.monotonic() - started >= 0.6


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("500", r"gives no answer in 6 attempts \(HTTP 500: out of memory\)"),
        ("cut", "gives no answer in 6 attempts"),
        ("no chat", "the response is no chat completion"),
        ("infinite", "the response is no chat completion"),
        ("404", "has no model 404"),
        ("slow", r"no response within 0\.05 s"),
        ("down", "is it running"),
    ],
)
def test_a_server_that_gives_no_answer_ends_the_run(model: str, said: str) -> None:
    more: dict[str, Any] = {"timeout": 0.05} if model == "slow" else {}
    more |= {"address": "http://127.0.0.1:9/v1"} if model == "down" else {}
    with pytest.raises(UserError, match=said) as error:
        ask(model, **more)
    assert "generators: test: the server at http://127.0.0.1:" in str(error.value)


def test_the_key_is_sent_and_is_in_no_message(monkeypatch: Patch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-SECRET-123")
    with pytest.raises(UserError, match="rejects the key of MY_KEY") as error:
        ask("401", api_key_env="MY_KEY")
    assert "SECRET" not in str(error.value).upper()
    for wrong in ("sk-SECRET\n123", "sk SECRET", "sk-SECRET-ключ"):
        monkeypatch.setenv("MY_KEY", wrong)
        with pytest.raises(UserError, match=r"MY_KEY has a character that is invalid in a key$"):
            ask("good", api_key_env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "  sk-SECRET-123\n")  # as of a file
    server, _ = ask("good", api_key_env="MY_KEY")
    assert {request["key"] for request in server.requests} == {"sk-secret-123"}


def test_a_word_of_an_answer_may_be_the_key(monkeypatch: Patch) -> None:
    """Servers without keys accept any key, such as `dummy`."""
    monkeypatch.setenv("OPENAI_API_KEY", "number")
    assert texts("good") == [(reworded(PROMPTS[0]), None)]


def test_only_answers_and_counted_tokens_have_a_cost() -> None:
    _, refused = ask("400")
    assert sum((of.usage for of in refused.values()), Usage()).requests == 0
    prices = {"input": 1.0, "output": 2.0}
    assert Usage(tokens_in=10, tokens_out=5).at_prices(prices) == pytest.approx(20e-6)
    assert Usage(tokens_in=10).at_prices(None) is None
    assert Usage(requests=3).at_prices(prices) is None  # the server does not count
    # A sum has the times of the first and of the last answer.
    total = sum((Answer(key="key", time=time).usage for time in (7.0, 5.0, 6.0)), Usage())
    assert (total.first, total.last) == (5.0, 7.0)


def test_requests_at_once_and_in_a_minute_are_bounded() -> None:
    server, _ = ask("good", concurrency=3, server_seconds=0.02)
    assert server.most == 3
    started = time.monotonic()
    ask("good", PROMPTS[:5], requests_per_minute=1200)  # 50 ms apart
    assert time.monotonic() - started >= 0.2


def test_parameters_are_sent_and_count_in_the_key() -> None:
    options: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "max_tokens": 7, "n": 2}
    server, _ = ask("good", PROMPTS[:1], **options)
    assert {name: server.requests[0][name] for name in options} == options

    def key(**more: Any) -> str:
        base: dict[str, Any] = {"kind": "chat", "name": "x", "base_url": "http://h", "model": "m"}
        return Request(ChatGenerator(**{**base, **more}), "prompt").key

    changes = {"model": "n", "n": 2, "seed": 1, "response": "json", "max_tokens": 9}
    changed = {key(**{name: value}) for name, value in changes.items()}
    assert len({key(), *changed}) == 1 + len(changes)
    assert key() == key(base_url="http://other", concurrency=3, timeout=3.0)


def test_a_shorter_pause_does_not_end_a_longer_one(monkeypatch: Patch) -> None:
    """A pause of 0 is none: attempts without pauses would all fail."""
    monkeypatch.setattr(chat_client, "FIRST_PAUSE", 0.05)
    generator = ChatGenerator(kind="chat", name="x", base_url="http://h", model="m")
    client = chat_client._Client(generator)
    client._next = later = time.monotonic() + 60
    busy = [(429, {"retry-after": seconds}, "busy") for seconds in ("0.001", "0")]
    answers = [*busy, (200, {}, '{"choices": []}')]
    monkeypatch.setattr(client, "_turn", AsyncMock())
    monkeypatch.setattr(client, "_send", AsyncMock(side_effect=answers))
    started = time.monotonic()
    assert asyncio.run(client._ask("key", "prompt")).retries == 2
    assert client._next == later
    assert time.monotonic() - started >= 0.1


def test_pauses_that_headers_ask_for() -> None:
    assert asked_pause({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert asked_pause({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert asked_pause({"retry-after": "nan"}) == asked_pause({"retry-after-ms": "-5"}) == 0
    assert asked_pause({"retry-after": "soon"}) == asked_pause({}) == 0


def test_an_error_ends_all_requests() -> None:
    with chat_server() as (server, url):
        of = ChatGenerator(kind="chat", name="x", model="good", base_url=url, concurrency=2)

        def keep(answer: Answer) -> None:
            raise UserError("enough")

        with pytest.raises(UserError, match="enough"):
            Clients([of]).ask([Request(of, prompt) for prompt in PROMPTS], keep)
    assert len(server.requests) <= 4
