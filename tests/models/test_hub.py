"""Names on the Hub: found in its cache, or one line that says how to fetch them elsewhere."""

import errno
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from paraloom.models import hub
from paraloom.models.errors import UserError
from tests.run_helpers import Patch

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def info(names: list[str]) -> SimpleNamespace:
    """What the Hub says of a repository with these files."""
    return SimpleNamespace(sha=COMMIT, siblings=[SimpleNamespace(rfilename=of) for of in names])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The Hub's cache with one model, and no network."""
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    repo = tmp_path / "hub" / "models--someone--opus-cs-en"
    folder = repo / "snapshots" / COMMIT
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "marian"}')
    (folder / "model.safetensors").touch()
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text(COMMIT)
    (repo / "refs" / "v1").write_text(COMMIT)
    return folder


@pytest.mark.parametrize("revision", ["", "@main", "@v1", f"@{COMMIT}"])
def test_a_model_in_the_cache_needs_no_network(cache: Path, revision: str) -> None:
    name = f"someone/opus-cs-en{revision}"
    assert hub.is_hub_name(name)
    folder = hub.fetch(name)
    assert folder == cache
    assert hub.revision(folder) == COMMIT
    assert hub.pinned(name) == f"someone/opus-cs-en@{COMMIT}"
    (cache / "model.safetensors").rename(cache / "model-00001-of-00002.safetensors")
    (cache / "model-00002-of-00002.safetensors").touch()
    assert hub.fetch(name) == cache


def test_a_folder_goes_first(cache: Path, tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "someone" / "opus-cs-en").mkdir(parents=True)
    assert hub.fetch("someone/opus-cs-en") == Path("someone/opus-cs-en")
    assert hub.pinned("someone/opus-cs-en") == "someone/opus-cs-en"
    assert hub.revision(Path("someone/opus-cs-en")) is None


@pytest.mark.parametrize("left", ["", "model-00001-of-00002.safetensors"])
@pytest.mark.parametrize("name", ["someone/other", "someone/opus-cs-en@v2", "someone/opus-cs-en"])
def test_without_a_network_the_message_says_how_to_fetch_it(
    cache: Path, name: str, left: str
) -> None:
    (cache / "model.safetensors").rename(cache / (left or "weights"))  # all weights are needed
    with pytest.raises(UserError, match=r"with `hf download someone/.*offline mode") as error:
        hub.fetch(name)
    assert "\n" not in str(error.value)
    assert ("--revision v2" in str(error.value)) == name.endswith("v2")


def test_only_files_that_are_needed_are_downloaded(tmp_path: Path, monkeypatch: Patch) -> None:
    names = ["config.json", "source.spm", "README.md", "tf_model.h5", "pytorch_model.bin",
             "model.safetensors", "onnx/model.safetensors", "modeling_code.py"]  # fmt: skip
    asked: list[tuple[str | None, list[str]]] = []

    def download(repo: str, revision: str | None = None, **options: list[str] | bool) -> str:
        if options.get("local_files_only"):
            raise OSError
        patterns = options["allow_patterns"]
        assert isinstance(patterns, list)
        asked.append((revision, patterns))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: info(names))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert hub.fetch("someone/opus-cs-en@v1") == tmp_path
    files = ["README.md", "config.json", "model.safetensors", "source.spm"]
    assert [(revision, sorted(found)) for revision, found in asked] == [("v1", files)]


class _Hub(BaseHTTPRequestHandler):
    """A Hub with one repository. `files` maps the repository's file names to their contents."""

    files: dict[str, bytes]
    requests: list[str]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if "o/m" not in self.path:
            return self.send_error(404)
        self.requests.append(self.path)
        headers = {"X-Repo-Commit": COMMIT}
        oids = {name: hashlib.sha1(of).hexdigest() for name, of in self.files.items()}
        if "/resolve/" in self.path:
            name = self.path.split("/", 5)[5]
            body, headers["ETag"] = self.files[name], f'"{oids[name]}"'
        elif "/tree/" in self.path:
            listed = [{"type": "file", "path": of, "size": 1, "oid": oids[of]} for of in oids]
            body = json.dumps(listed).encode()
        else:
            siblings = [{"rfilename": of} for of in oids]
            body = json.dumps({"id": "o/m", "sha": COMMIT, "siblings": siblings}).encode()
        self.send_response(200)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        return None

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("weights", ["model.safetensors", "model.bin"])
def test_a_fetched_model_is_found_without_the_hub(
    tmp_path: Path, monkeypatch: Patch, weights: str
) -> None:
    """Although files that are not needed were not fetched, and the branch may have moved on."""
    import huggingface_hub.constants as constants

    files = {name: name[:1].encode() for name in ("config.json", "source.spm", weights, "tf.h5")}
    requests: list[str] = []
    handler = type("Handler", (_Hub,), {"files": files, "requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        files_at = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files_at)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        folder = hub.fetch("o/m")
        assert {path.name for path in folder.iterdir()} == {"config.json", "source.spm", weights}
        requests.clear()
        assert [hub.fetch(name) for name in ("o/m", hub.pinned("o/m"))] == [folder] * 2
        assert not requests
        (folder / "source.spm").unlink()  # as after a killed download
        assert hub.fetch("o/m") == folder and (folder / "source.spm").is_file()
        server.shutdown()


def test_a_model_without_the_needed_file_is_fetched_again(cache: Path) -> None:
    """Other programs fetch only the files that they read, for example without modules.json."""
    name = "someone/opus-cs-en"
    assert hub.fetch(name, needs="config.json") == cache
    with pytest.raises(UserError, match="cannot be fetched from the Hub"):
        hub.fetch(name, needs="modules.json")


def test_files_of_a_data_set_are_fetched_once(tmp_path: Path, monkeypatch: Patch) -> None:
    names = {None: ["data.csv"], "refs/convert/parquet": ["a/train/0.parquet", "a/test/0.parquet"]}
    names["refs/convert/parquet"].append("README.md")
    asked: list[tuple[str | None, list[str]]] = []

    def download(repo: str, *, repo_type: str, revision: str, allow_patterns: list[str]) -> str:
        asked.append((revision, allow_patterns))
        for name in allow_patterns:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(name)
        return str(tmp_path)

    def choose(of: list[str], card: Path) -> list[str]:
        assert card.read_text() == "README.md"
        return of[:1]

    api = huggingface_hub.HfApi
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(api, "dataset_info", lambda _, repo, revision: info(names[revision]))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    fetched = tmp_path, ["a/train/0.parquet"]
    for _ in range(2):
        found = hub.fetch_dataset("someone/set", choose, ["a"], "input.paths")
        assert found == fetched
    assert asked == [(COMMIT, ["README.md"]), (COMMIT, ["a/train/0.parquet"])]
    (tmp_path / "a/train/0.parquet").unlink()  # the Hub's cache was cleared
    assert hub.fetch_dataset("someone/set", choose, ["a"], "input.paths") == fetched
    assert len(asked) == 4
    (record,) = (tmp_path / "cache/paraloom/datasets").iterdir()
    for damaged in (b"", b'["x", []]', b"\xff", record.read_bytes()[:-3]):
        record.write_bytes(damaged)
        assert hub.fetch_dataset("someone/set", choose, ["a"], "input.paths") == fetched
    assert len(asked) == 12
    monkeypatch.setenv("XDG_CACHE_HOME", str(record))  # a folder cannot be made there
    assert hub.fetch_dataset("someone/set", choose, ["a"], "input.paths") == fetched


def test_what_the_hub_refuses_is_one_line(cache: Path, monkeypatch: Patch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    said = r"^nmt.model: someone/other is not a folder.* private .* `hf auth login`.*No space left"
    with pytest.raises(UserError, match=said):
        hub.fetch("someone/other")
