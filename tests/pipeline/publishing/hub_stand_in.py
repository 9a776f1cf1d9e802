"""A Hub on loopback that accepts commits: the answers that `huggingface_hub` needs to upload."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlparse


@dataclass
class Hub:
    """The state of the server: files by repository, and what was asked."""

    endpoint: str = ""
    refuse: int = 0  # status of every answer, if it is not 0
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    cards: list[str] = field(default_factory=list)  # those it was asked to check
    commits: int = 0

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        """Status and JSON for a request."""
        if self.refuse:
            return self.refuse, {"error": "no"}
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in self.repositories:
                return 409, {"error": "exists", "url": f"{self.endpoint}/datasets/{name}"}
            self.repositories[name] = {".gitattributes": b""}
            self.private[name] = asked.get("private") or asked.get("visibility") == "private"
            return 200, {"url": f"{self.endpoint}/datasets/{name}"}
        if path == "/api/validate-yaml":
            self.cards.append(json.loads(body)["content"])
            return 200, {"errors": [], "warnings": []}
        if not path.startswith("/api/datasets/"):
            return 404, {"error": "not found"}
        owner, name, action, *_ = path.removeprefix("/api/datasets/").split("/")
        files = self.repositories[f"{owner}/{name}"]
        if action == "tree":
            found = [(path, len(data)) for path, data in files.items()]
            return 200, [{"type": "file", "path": p, "size": n, "oid": "0"} for p, n in found]
        if action == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            mode = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return 200, {"files": [{"path": name, **mode} for name in names]}
        assert (method, action) == ("POST", "commit"), path
        for line in body.splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                content = entry["value"]["content"]
                files[entry["value"]["path"]] = base64.b64decode(content)
            elif entry["key"] == "deletedFile":
                del files[entry["value"]["path"]]
        self.commits += 1
        url = f"{self.endpoint}/datasets/{owner}/{name}/commit/{self.commits}"
        return 200, {"success": True, "commitOid": str(self.commits), "commitUrl": url}


@contextmanager
def hub_stand_in() -> Iterator[Hub]:
    """A server with an empty Hub."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply("GET")

        def do_POST(self) -> None:
            self.reply("POST")

        def reply(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = hub.answer(method, urlparse(self.path).path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield hub
    server.shutdown()
    server.server_close()
