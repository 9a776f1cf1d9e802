"""An emulator of Google's object store in threads of this process, with a bucket `paraloom`.

The server also issues tokens for a made-up service account, counts requests, and can be slow.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

BUCKET = "gs://paraloom"


class GoogleStore:
    """The running emulator.

    Attributes:
        env: environment variables that connect Google's client to the emulator.
        requests: number of requests so far, by method and kind of path.
    """

    def __init__(self, env: dict[str, str]):
        self.env = env
        self.requests: Counter[str] = Counter()


@contextmanager
def google_store() -> Iterator[GoogleStore]:
    """Run the emulator."""
    from gcp_storage_emulator.handlers.buckets import create_bucket
    from gcp_storage_emulator.server import RequestHandler
    from gcp_storage_emulator.storage import Storage

    lock, count_lock = Lock(), Lock()

    class Memory(Storage):  # type: ignore[misc]
        def _write_config_to_file(self) -> None:
            """Do nothing. The original writes the names of all objects for each new object."""

    class Handler(RequestHandler):  # type: ignore[misc]
        protocol_version = "HTTP/1.1"  # keep connections, as Google does
        disable_nagle_algorithm = True
        wbufsize = -1  # headers and body in one packet

        def handle_one_request(self) -> None:
            super().handle_one_request()
            self.wfile.flush()

        def do_POST(self) -> None:  # noqa: N802
            if self.path == "/token":
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer({"access_token": "x", "expires_in": 3600, "token_type": "Bearer"})
            else:
                with lock:
                    super().do_POST()

        def do_GET(self) -> None:  # noqa: N802
            with lock:  # the emulator's own server has one thread
                super().do_GET()

        def do_PUT(self) -> None:  # noqa: N802
            with lock:
                super().do_PUT()

        def do_DELETE(self) -> None:  # noqa: N802
            with lock:
                super().do_DELETE()

        def _answer(self, values: dict[str, Any]) -> None:
            body = json.dumps(values).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def parse_request(self) -> bool:
            parsed = bool(super().parse_request())
            if parsed and self.path != "/token":
                with count_lock:
                    store.requests[f"{self.command} {_kind(self.path)}"] += 1
            return parsed

    objects = Memory(use_memory_fs=True)
    create_bucket(BUCKET.removeprefix("gs://"), objects)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, objects))
    url = f"http://127.0.0.1:{server.server_port}"
    with tempfile.TemporaryDirectory() as folder:
        account = Path(folder, "account.json")
        account.write_text(json.dumps(_account(f"{url}/token")))
        env = {"GOOGLE_APPLICATION_CREDENTIALS": str(account), "STORAGE_EMULATOR_HOST": url}
        store = GoogleStore(env)
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield store
        finally:
            server.shutdown()
            server.server_close()


def _kind(path: str) -> str:
    path, _, query = path.partition("?")
    if path.startswith(("/upload", "/download", "/batch")):
        return path.split("/")[1]
    if path.endswith("/o"):
        return "list"
    if "/o/" not in path:
        return "bucket"
    return "content" if "alt=media" in query else "metadata"


def _account(token_uri: str) -> dict[str, str]:
    """Return a made-up service account."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": "paraloom",
        "private_key_id": "1",
        "private_key": key.decode(),
        "client_email": "tests@paraloom.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": token_uri,
    }
