"""Wrong requests are refused and leave no trace; right ones are on the disk when answered."""

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from paraloom.pipeline.judging.judgments import JudgeFile, read_judgments
from paraloom.pipeline.judging.sampling import Pair, ScoredRun, sample_pairs
from paraloom.pipeline.judging.server import JudgingServer, Scale, Session
from tests.run_helpers import Capsys, WriteConfig, changed_record, refusal


class Reply(NamedTuple):
    status: int
    body: Any
    headers: http.client.HTTPMessage


class Client:
    """Requests as the page makes them, with some things changed."""

    def __init__(self, run: Path, scale: Scale = "0-100") -> None:
        self.run = run
        scored = ScoredRun(str(run))
        self.pairs = sample_pairs(scored, 30)
        self.server = JudgingServer(scored, self.pairs, scale)
        self.port = urlsplit(self.server.url).port or 0
        self.path = urlsplit(self.server.url).path
        Thread(target=self.server.serve, daemon=True).start()

    def ask(
        self,
        name: str = "judge",
        body: Any = None,
        *,
        method: str = "POST",
        path: str | None = None,
        **headers: str | None,
    ) -> Reply:
        given: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/json",
        }
        given |= {key.replace("_", "-"): value for key, value in headers.items()}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if method == "POST":
            given.setdefault("Content-Length", f"{len(data)}")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.putrequest(method, path or self.path + name, skip_host=True)
        for key, value in given.items():
            if value is not None:
                connection.putheader(key, value)
        connection.endheaders()
        if method == "POST":
            connection.send(data[:60_000])  # a refusal does not wait for all of it
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        is_json = answer.headers.get_content_type() == "application/json"
        return Reply(answer.status, json.loads(content) if is_json else content, answer.headers)

    def answer(self, pair: Pair, **changes: Any) -> dict[str, Any]:
        return {"judge": "a", "id": pair.id, "score": 50, "fluency": 1, **changes}


@pytest.fixture
def client(write_run: WriteConfig) -> Iterator[Client]:
    client = Client(write_run(100))
    yield client
    client.server.close()


def content(run: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in run.parent.rglob("*") if p.is_file()}


def test_wrong_requests(client: Client) -> None:
    first, second, third = client.pairs[:3]
    assert client.ask(body=client.answer(first)).status == 200
    assert client.ask(body=client.answer(second)).status == 200
    undo = {"judge": "a", "id": second.id}
    assert client.ask("undo", undo).status == 200
    right = client.answer(third)
    own, token = client.path, client.path.strip("/")
    before = content(client.run)
    wrong: list[tuple[int, Reply]] = [
        # The address.
        (403, client.ask(path="/judge", body=right)),
        (403, client.ask(path=f"/{token[:-1]}/state?judge=a", method="GET")),
        # Other pages, and other names of this machine.
        (403, client.ask(body=right, Origin="http://example.org")),
        (403, client.ask(body=right, Origin=None)),
        (403, client.ask(body=right, Origin=f"https://127.0.0.1:{client.port}")),
        (403, client.ask(body=right, Sec_Fetch_Site="cross-site")),
        (403, client.ask(body=right, Host=f"example.org:{client.port}")),
        (403, client.ask(method="GET", path=own, Host="example.org")),
        # Pairs.
        (409, client.ask(body={**right, "id": "forged"})),
        (409, client.ask(body={**right, "candidate": 1})),
        (409, client.ask("undo", undo)),
        (409, client.ask("undo", {"judge": "nobody", "id": first.id})),
        # Values.
        (400, client.ask(body={**right, "score": 101})),
        (400, client.ask(body={**right, "score": float("nan")})),
        (400, client.ask(body={**right, "fluency": 3})),
        (400, client.ask(body={**right, "more": 1})),
        (400, client.ask(body=b"\xff{")),
        (400, client.ask(body=b"[" * 60_000)),
        # Judges.
        (400, client.ask(body={**right, "judge": "../../x"})),
        (400, client.ask(path=f"{own}state?judge=..", method="GET")),
        # The form.
        (413, client.ask(body=b"x" * 10_000_000)),
        (413, client.ask(body=right, Content_Length="10000000")),
        (411, client.ask(body=b"2\r\n{}\r\n0\r\n\r\n", Content_Length=None)),
        (415, client.ask(body=right, Content_Type="text/plain")),
        (405, client.ask(method="PUT", path=own, Content_Length="0")),
        (404, client.ask(method="GET", path=f"{own}judge")),
        # Files.
        (404, client.ask(method="GET", path=f"{own}../manifest.json")),
        (404, client.ask(method="GET", path=f"{own}..%2f..%2fmanifest.json")),
        (404, client.ask(method="GET", path=f"{own}%2e%2e/server.py")),
    ]
    assert [reply.status for _, reply in wrong] == [status for status, _ in wrong]
    assert all(set(reply.body) == {"error"} for _, reply in wrong)
    assert all(token not in json.dumps(reply.body) for _, reply in wrong)
    assert content(client.run) == before
    assert client.ask(body=right).status == 200


def test_the_answer_is_the_next_pair_and_no_score(client: Client) -> None:
    state = client.ask("state?judge=a", method="GET").body
    for i, pair in enumerate(client.pairs):
        assert state == {
            "pair": {
                "id": pair.id,
                "candidate": None,
                "source": pair.source,
                "reference": pair.reference,
                "translation": pair.translation,
            },
            "judged": i,
            "skipped": 0,
            "total": 30,
            "last": {"id": client.pairs[i - 1].id, "candidate": None} if i else None,
        }
        state = client.ask(body=client.answer(pair, score=i)).body
        assert len(read_judgments(str(client.run))) == i + 1
    assert (state["pair"], state["judged"]) == (None, 30)
    assert client.ask("state?judge=other", method="GET").body["pair"]["id"] == client.pairs[0].id
    undone = client.ask("undo", {"judge": "a", **state["last"]}).body
    assert undone["undone"] == {"score": 29, "fluency": 1}
    assert undone["pair"]["id"] == client.pairs[29].id
    skip = client.answer(client.pairs[29], score=None, fluency=None)
    skipped = client.ask(body=skip).body
    assert (skipped["judged"], skipped["skipped"], skipped["pair"]) == (29, 1, None)
    assert len(read_judgments(str(client.run))) == 29


def test_what_was_judged_under_an_earlier_id_is_done_and_can_be_undone(client: Client) -> None:
    first, second, *_ = client.pairs
    before = [pair.action(score=of).model_copy(update={"id": f"1-train.cs:{of}"})
              for of, pair in ((7, first), (9, second))]  # fmt: skip
    JudgeFile(str(client.run), "a").append(before)
    state = client.ask("state?judge=a", method="GET").body
    assert (state["judged"], state["last"]["id"]) == (2, second.id)
    assert state["pair"]["id"] == client.pairs[2].id
    undone = client.ask("undo", {"judge": "a", "id": second.id}).body
    assert (undone["undone"]["score"], undone["pair"]["id"], undone["judged"]) == (9, second.id, 1)
    again = client.ask(body=client.answer(first, score=70)).body
    assert again["judged"] == 1
    assert [of.score for of in read_judgments(str(client.run))] == [70]


def test_undo_shows_the_undone_pair_again(client: Client) -> None:
    """Also if an earlier pair is not judged, since the judge began with another sample."""
    later = client.pairs[5]
    state = client.ask(body=client.answer(later, score=93)).body
    assert state["pair"]["id"] == client.pairs[0].id
    undone = client.ask("undo", {"judge": "a", **state["last"]}).body
    assert (undone["pair"]["id"], undone["undone"]["score"]) == (later.id, 93)


def test_the_page_reads_nothing_from_elsewhere(client: Client) -> None:
    for name in ("", "judge.js", "style.css", "icon.svg"):
        reply = client.ask(name, method="GET")
        assert reply.status == 200
        text = reply.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text
        assert reply.headers["Content-Security-Policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        assert reply.headers["Referrer-Policy"] == "no-referrer"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Cache-Control"] == "no-store"
        for of in ("Opener", "Resource"):
            assert reply.headers[f"Cross-Origin-{of}-Policy"] == "same-origin"
        assert "Werkzeug" not in str(reply.headers)
    assert client.ask("", method="HEAD", Origin=None).status == 200
    other = f"localhost:{client.port}"  # as a forwarded port may be named
    body = client.answer(client.pairs[0])
    assert client.ask(body=body, Host=other, Origin=f"http://{other}").status == 200


def test_the_page_says_run_judge_and_languages(write_run: WriteConfig) -> None:
    folder = write_run(100)
    with changed_record(folder) as values:
        values["config"]["input"] |= {"source_language": "he_IL", "target_language": "fr"}
    run = ScoredRun(str(folder))
    server = JudgingServer(run, sample_pairs(run, 1), "yes-no", "Anna")
    Thread(target=server.serve, daemon=True).start()
    with urlopen(server.url, timeout=120) as reply:
        text = reply.read().decode()
    server.close()
    assert f"<h1>{folder.name}</h1>" in text
    assert 'data-scale="yes-no" data-judge="Anna"' in text
    assert text.count('lang="fr" dir="auto"') == 2
    assert text.count('lang="he" dir="auto"') == 1


def test_yes_and_no(write_run: WriteConfig) -> None:
    client = Client(write_run(100), "yes-no")
    for score, status in ((50, 409), (100, 200), (0, 200)):
        assert client.ask(body=client.answer(client.pairs[0], score=score)).status == status
    client.server.close()


def test_a_pair_with_another_text_is_judged_again(client: Client) -> None:
    pair, *others = client.pairs
    assert client.ask(body=client.answer(pair)).status == 200
    for side in ("reference", "translation"):
        change: dict[str, Any] = {side: "another one"}
        changed = pair.model_copy(update=change)
        found = Session(str(client.run), [changed, *others], "0-100").state("a")
        now = found["pair"][side], found["judged"], found["last"]
        assert now == ("another one", 0, None)


def test_ports(write_run: WriteConfig) -> None:
    run = ScoredRun(str(write_run(100)))
    pairs = sample_pairs(run, 1)
    first, second = JudgingServer(run, pairs), JudgingServer(run, pairs)
    ports = [urlsplit(server.url).port for server in (first, second)]
    assert ports[0] != ports[1]
    assert first.url.split("/")[3] != second.url.split("/")[3]
    with pytest.raises(UserError, match=f"--port {ports[0]}: cannot be used"):
        JudgingServer(run, pairs, port=ports[0])
    for host in ("127.0.0.2", "::1"):  # other addresses of this machine
        with pytest.raises(OSError):
            socket.create_connection((host, ports[0] or 0), timeout=1)


def test_nothing_to_judge(write_run: WriteConfig, tmp_path: Path, capsys: Capsys) -> None:
    assert main(["judge", str(write_run(40, equal=40))]) == 2
    assert "no pair to judge" in capsys.readouterr().err
    assert main(["judge", str(write_run(100)), "--judge", "../x"]) == 2
    assert "cannot be a judge's name" in capsys.readouterr().err
    assert "no run here" in refusal(capsys, "judge", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()
