"""Corpora of OPUS by name, from a server on loopback that speaks its interface."""

import io
import json
import multiprocessing
import random
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from paraloom.beam_jobs.bitext import Layout, find_bitext, opus, read_bitext
from paraloom.models.errors import UserError
from paraloom.pipeline.cli import main
from tests.run_helpers import Patch

CODES = ("cs", "en")
CZECH = ["Pes běží ve sněhu.", "Muž hraje na starou kytaru.", "Dvě děti jedí zmrzlinu."]
ENGLISH = ["A dog runs in the snow.", "A man plays an old guitar.", "Two children eat ice cream."]
README = """Corpus Name: Books
License: not this line

Please cite the following article if you use any part of the corpus in your own work:
J. Someone, 2012,
Books in Two Languages

More text.
"""
FILES = {
    "Books.cs-en.cs": "".join(f"{text}\n" for text in CZECH),
    "Books.cs-en.en": "".join(f"{text}\n" for text in ENGLISH),
    "LICENSE": "\nCC BY 4.0\nThe rest of the licence.\n",
    "README": README,
    "noise": "".join(random.Random(1).choices("abcdefgh", k=300_000)),
}


def packed(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


class Server:
    """What the server has, how it misbehaves, and what it did."""

    def __init__(self) -> None:
        self.zip = packed(FILES)
        self.versions = ["v1", "v2"]
        self.cuts: list[int] = []  # each of the next answers ends after so many bytes
        self.cut_always = 0
        self.ranges = True
        self.pause = 0.0  # seconds after each 10,000 bytes
        self.status = 200
        self.address = ""
        self.sent = 0
        self.asked: list[str] = []  # path and range of each request

    def entries(self, corpus: str, pair: set[str]) -> list[dict[str, object]]:
        if corpus != "Books" or pair != {"cs", "en"}:
            return []
        return [
            {
                "corpus": corpus,
                "version": version,
                "latest": str(version == self.versions[-1]),
                "url": f"{self.address}/moved/{version}/cs-en.txt.zip",
                "size": len(self.zip) // 1024,
                "alignment_pairs": 3,
            }
            for version in self.versions
        ]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: Patch) -> Iterator[Server]:
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            served.asked.append(f"{url.path} {self.headers['Range'] or ''}".strip())
            if url.path == "/opusapi/":
                query = {key: value[0] for key, value in parse_qs(url.query).items()}
                assert query["preprocessing"] == "moses"
                found = served.entries(query["corpus"], {query["source"], query["target"]})
                self.answer(200, json.dumps({"corpora": found}).encode())
            elif url.path.startswith("/moved/"):
                self.send_response(302)
                self.send_header("Location", url.path.replace("/moved/", "/files/"))
                self.end_headers()
            elif served.status != 200:
                self.send_error(served.status)
            else:
                asked = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
                start = int(asked[1]) if asked and served.ranges else 0
                if start >= len(served.zip):
                    self.send_error(416)
                else:
                    self.answer(206 if start else 200, served.zip[start:], file=True)

        def answer(self, status: int, body: bytes, file: bool = False) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if file:
                body = body[: served.cuts.pop(0) if served.cuts else served.cut_always or None]
            for at in range(0, len(body), 10_000):
                self.wfile.write(body[at : at + 10_000])
                served.sent += file * len(body[at : at + 10_000])
                time.sleep(served.pause * file)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        served.address = f"http://127.0.0.1:{httpd.server_port}"
        monkeypatch.setenv("OPUS_ENDPOINT", f"{served.address}/opusapi")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(opus, "_PAUSE", 0)
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        yield served
        httpd.shutdown()


def home(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "paraloom" / "opus" / "Books"


def pairs(name: str, codes: tuple[str, str] = CODES) -> list[tuple[str, str]]:
    (bitext,) = find_bitext("opus", [name], Layout(codes=codes))
    (block,) = read_bitext(bitext)
    return [(row["source"], row["reference"]) for row in block.pairs.to_pylist()]


def test_a_corpus_is_fetched_through_a_redirect_and_once(server: Server, tmp_path: Path) -> None:
    assert pairs("Books") == list(zip(CZECH, ENGLISH, strict=True))
    assert [path.split()[0] for path in server.asked] == [
        "/opusapi/",
        "/moved/v2/cs-en.txt.zip",
        "/files/v2/cs-en.txt.zip",
    ]
    names = {path.name for path in (home(tmp_path) / "v2.cs-en").iterdir()}
    assert names == {"Books.cs-en.cs", "Books.cs-en.en", "LICENSE", "README"}
    server.versions.append("v3")  # a corpus in the cache stays, and asks nobody
    assert len(pairs("Books")) == len(pairs("Books@v2")) == 3
    assert pairs("Books", ("en", "cs")) == list(zip(ENGLISH, CZECH, strict=True))
    assert len(server.asked) == 3
    assert len(pairs("Books@v1")) == 3
    assert server.asked[3:][-1] == "/files/v1/cs-en.txt.zip"
    assert not [*home(tmp_path).glob("*.part")]


def test_files_may_name_the_pair_in_the_other_order(server: Server) -> None:
    server.zip = packed({f"Books.en-cs.{code}": FILES[f"Books.cs-en.{code}"] for code in CODES})
    assert pairs("Books") == list(zip(CZECH, ENGLISH, strict=True))


def test_licence_and_citation_are_kept(server: Server) -> None:
    """Without them, the README's licence and the article on OPUS count."""
    source, _ = opus.fetch("Books@v1", CODES)
    assert opus.terms(source) == {
        "corpus": "Books",
        "version": "v1",
        "license": "CC BY 4.0",
        "citation": "J. Someone, 2012, Books in Two Languages",
    }
    files = {name: text for name, text in FILES.items() if name != "LICENSE"}
    server.zip = packed({**files, "README": "Corpus Name: Books\nLicense: GPL\n"})
    found = opus.terms(opus.fetch("Books", CODES)[0])
    assert (found["license"], found["citation"][:12]) == ("GPL", "J. Tiedemann")


@pytest.mark.parametrize("cuts", [[40_000], [1], [50_000, 30_000, 10]])
def test_a_broken_download_continues_where_it_ended(server: Server, cuts: list[int]) -> None:
    server.cuts = list(cuts)
    assert len(pairs("Books")) == 3
    assert server.sent == len(server.zip)
    starts = [int(at.split("=")[1][:-1]) for at in server.asked if " bytes" in at and "files" in at]
    assert starts == [sum(cuts[: n + 1]) for n in range(len(cuts))]


def test_a_killed_download_continues(server: Server, tmp_path: Path) -> None:
    server.pause = 0.05
    code = "from paraloom.beam_jobs.bitext import opus; opus.fetch('Books', ('cs', 'en'))"
    process = subprocess.Popen([sys.executable, "-c", code])
    part = home(tmp_path) / "v2.cs-en.zip.part"
    end = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size >= 20_000) and time.monotonic() < end:
        time.sleep(0.005)
    process.kill()
    process.wait()
    have, server.pause, server.asked = part.stat().st_size, 0, []
    assert 20_000 <= have < len(server.zip)
    assert len(pairs("Books")) == 3
    assert server.asked[-1] == f"/files/v2/cs-en.txt.zip bytes={have}-"


def test_a_download_that_was_complete_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    home(tmp_path).mkdir(parents=True)
    (home(tmp_path) / "v2.cs-en.zip.part").write_bytes(server.zip)
    assert len(pairs("Books")) == 3
    assert server.sent == 0


def test_a_server_without_ranges_sends_the_file_again(server: Server) -> None:
    server.ranges, server.cuts = False, [40_000]
    assert len(pairs("Books")) == 3
    assert server.sent == 40_000 + len(server.zip)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_size_that_never_comes_is_an_error_and_keeps_what_came(
    server: Server, tmp_path: Path, ranges: bool
) -> None:
    server.ranges, server.cuts = ranges, [40_000, *[40_000 * (not ranges)] * 20]
    with pytest.raises(UserError, match=r"Books: cannot be fetched now.* 40,000 of [\d,]+ bytes"):
        pairs("Books")
    assert (home(tmp_path) / "v2.cs-en.zip.part").stat().st_size == 40_000
    server.cuts = []
    assert len(pairs("Books")) == 3


@pytest.mark.parametrize("status", [404, 503])
def test_a_file_that_the_server_refuses_is_one_line(server: Server, status: int) -> None:
    server.status = status
    with pytest.raises(UserError, match=rf"Books: cannot be fetched now.*{status}"):
        pairs("Books")
    assert len(server.asked) == 3 if status == 404 else 11


@pytest.mark.parametrize("name", ["../../Books.cs-en.cs", "{}/Books.cs-en.cs", "a/Books.cs-en.cs"])
def test_no_file_leaves_the_folder(server: Server, tmp_path: Path, name: str) -> None:
    server.zip = packed({**FILES, name.format(tmp_path): "Somewhere else.\n"})
    assert pairs("Books") == list(zip(CZECH, ENGLISH, strict=True))
    assert not [path for path in tmp_path.rglob("*.cs") if path.parent.name != "v2.cs-en"]


def damaged() -> bytes:
    content = bytearray(packed({"x": FILES["noise"], **FILES}))
    content[content.index(b"Books.cs-en.cs") + 30] ^= 255
    return bytes(content)


WRONG = {
    "no zip": b"<html>Moved</html>",
    "another pair": packed({"Books.cs-de.cs": "Ahoj.\n", "Books.cs-de.de": "Hallo.\n"}),
    "one side": packed({"Books.cs-en.cs": "Ahoj.\n"}),
    "below a folder": packed({f"a/{name}": text for name, text in FILES.items()}),
    "a bomb": packed({**FILES, "zeros": "0" * 20_000_000}),
    "damaged": damaged(),
}


@pytest.mark.parametrize("kind", WRONG)
def test_another_file_is_one_line_and_removed(server: Server, tmp_path: Path, kind: str) -> None:
    good, server.zip = server.zip, WRONG[kind]
    with pytest.raises(UserError, match="was not a valid zip of a corpus"):
        pairs("Books")
    assert [path.name for path in home(tmp_path).iterdir()] == [".lock"]
    server.zip = good
    assert len(pairs("Books")) == 3


@pytest.mark.parametrize(
    ("name", "codes", "said"),
    [
        ("Bücher", CODES, "not a corpus name"),
        ("../Books", CODES, "not a corpus name"),
        ("Books@", CODES, "not a corpus name"),
        ("Books", ("cs", "../en"), "not a corpus name"),
        ("Nothing", CODES, "has no version of Nothing for cs and en"),
        ("Books", ("cs", "de"), "has no version of Books for cs and de"),
        ("Books@v9", CODES, "has v1, v2 of Books for cs and en"),
    ],
)
def test_an_unknown_corpus_is_one_line(
    server: Server, name: str, codes: tuple[str, str], said: str
) -> None:
    with pytest.raises(UserError, match=said) as caught:
        find_bitext("opus", [name], Layout(codes=codes))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"address": "file:///etc"}, "versions are named as in Books@v1"),
        ({"address": "ftp://127.0.0.1"}, "versions are named as in Books@v1"),
        ({"versions": ["../../v1"]}, "no version of Books"),  # it would leave the folder
        ({"endpoint": "http://127.0.0.1:9/"}, "fetch its Moses files elsewhere.*format: moses"),
        ({"endpoint": "{}/files"}, "Books: cannot be fetched now"),  # something else answers
    ],
)
def test_an_odd_answer_or_none_is_one_line(
    server: Server, change: dict[str, Any], said: str, monkeypatch: Patch
) -> None:
    if "endpoint" in change:
        monkeypatch.setenv("OPUS_ENDPOINT", change["endpoint"].format(server.address))
    vars(server).update(change)
    with pytest.raises(UserError, match=said):
        pairs("Books")


def _fetch(_: int) -> tuple[str, str]:
    return opus.fetch("Books", CODES)


def test_two_processes_fetch_it_once(server: Server) -> None:
    server.pause = 0.002
    with multiprocessing.get_context("fork").Pool(2) as pool:
        one, two = pool.map(_fetch, range(2), chunksize=1)
    assert one == two
    assert server.sent == len(server.zip)


def test_init_pins_version_and_licence(server: Server, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "opus:Books", "--source-language", "cs"]) == 0
    config = yaml.safe_load((tmp_path / "paraloom.yaml").read_text())
    assert config["input"] == {
        "format": "opus",
        "paths": ["Books@v2"],
        "source_language": "cs",
        "target_language": "en",
        "license": "CC BY 4.0",
    }
    assert main(["ingest", "--config", "paraloom.yaml"]) == 0
    values = json.loads((tmp_path / config["run"] / "manifest.json").read_text())
    record = values["stages"]["ingest"]
    assert (record["rows_out"], [of["version"] for of in record["terms"]]) == (3, ["v2"])
    files = [Path(of["path"]).name for of in values["inputs"]]
    assert files == ["Books.cs-en.cs", "Books.cs-en.en"]
