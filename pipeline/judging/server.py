"""The server of the page on which people judge pairs.

The server listens on the loopback address. Requests must contain the secret in the page's
address, and requests that change judgments must come from the page. Therefore other websites and
other users cannot read pairs.
"""

import secrets
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from threading import Lock
from typing import Any, Literal, TypeVar

from flask import Flask, Response, abort, jsonify, render_template, request, send_from_directory
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import Conflict, HTTPException
from werkzeug.serving import WSGIRequestHandler, make_server

from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.pipeline.judging.judgments import (
    Action,
    Fluency,
    JudgeFile,
    JudgeName,
    PairName,
    PairTexts,
    Score,
)
from paraloom.pipeline.judging.sampling import Pair, ScoredRun

PAGE = Path(__file__).parent / "page"
PORT = 51397
"""The default port. The port is fixed, because browsers store the judge's name by host and port."""

_HOST = "127.0.0.1"
_BODY = 1 << 16  # largest size of a request's body, in bytes
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Body = TypeVar("Body", bound=BaseModel)
Scale = Literal["0-100", "yes-no"]


class Target(PairName):
    """A judge and a pair, as the page sends them."""

    judge: JudgeName


class SentJudgment(Target):
    """A judgment as the page sends it."""

    score: Score | None  # None if the judge skips the pair
    fluency: Fluency | None


class Session:
    """The sample of pairs, and the files of the judges."""

    def __init__(self, run: str, pairs: Sequence[Pair], scale: Scale) -> None:
        self.run, self.scale = run, scale
        self._pairs = {pair.key: pair for pair in pairs}
        self._files: dict[str, JudgeFile] = {}
        self._lock = Lock()

    def state(self, judge: str) -> dict[str, Any]:
        """Return the progress of a judge, and the next pair (None after the last pair)."""
        with self._lock:
            return self._state(self._file(judge))

    def judge(self, sent: SentJudgment) -> dict[str, Any]:
        """Save a judgment, and return the new state."""
        if self.scale == "yes-no" and sent.score not in (0, 100, None):
            raise Conflict("on this scale a score is 0 or 100")
        with self._lock:
            if (pair := self._pairs.get(sent.key)) is None:
                raise Conflict("there is no such pair to judge")
            file = self._file(sent.judge)
            file.append([pair.action(score=sent.score, fluency=sent.fluency)])
            return self._state(file)

    def undo(self, target: Target) -> dict[str, Any]:
        """Undo the judge's last action. Return the new state with the undone pair and its label."""
        with self._lock:
            file = self._file(target.judge)
            done = self._done(file)
            if not done or done[-1][0].key != target.key:
                raise Conflict("this is not the pair of the last action")
            pair, last = done[-1]
            texts = last.model_dump(include={"reference", "translation"})
            file.append([Action(id=last.id, candidate=last.candidate, undone=True, **texts)])
            undone = last.model_dump(include={"score", "fluency"})
            return {**self._state(file), "pair": pair.model_dump(), "undone": undone}

    def _file(self, judge: str) -> JudgeFile:
        if judge not in self._files:
            self._files[judge] = JudgeFile(self.run, judge)
        return self._files[judge]

    def _done(self, file: JudgeFile) -> list[tuple[Pair, Action]]:
        """Return the judged and skipped pairs of the sample, each with its last action."""
        pairs = {(pair.reference, pair.translation): pair for pair in self._pairs.values()}
        found = dict[PairTexts, Action]()
        for action in file.actions.values():
            found.pop(action.pair, None)  # move the pair to the end
            found[action.pair] = action
        return [(pairs[texts], action) for texts, action in found.items() if texts in pairs]

    def _state(self, file: JudgeFile) -> dict[str, Any]:
        done = self._done(file)
        keys, judged = {of.key for of, _ in done}, sum(of.score is not None for _, of in done)
        pair = next((pair for key, pair in self._pairs.items() if key not in keys), None)
        return {
            "pair": pair.model_dump() if pair else None,
            "judged": judged,
            "skipped": len(done) - judged,
            "total": len(self._pairs),
            "last": done[-1][0].model_dump(include={"id", "candidate"}) if done else None,
        }


class JudgingServer:
    """The server of the page on which people judge a sample of a run's pairs.

    If `port` is None, the server uses PORT, or a free port if PORT is in use. The attribute `url`
    is the address to open.
    """

    def __init__(
        self,
        run: ScoredRun,
        sample: Sequence[Pair],
        scale: Scale = "0-100",
        judge: str = "",
        port: int | None = None,
    ) -> None:
        if not sample:
            raise UserError(
                f"{run.folder}: no pair to judge; pairs with two equal sides are left out"
            )
        given = run.record.config.input
        values = {
            "judge": judge,
            "run_name": PurePath(run.folder).name or run.folder,
            "language": run.record.config.language,
            "source_language": short_code(given.source_language) if given else "",
        }
        token = secrets.token_urlsafe(24)
        app = _application(Session(run.folder, sample, scale), token, values)
        for number in (PORT, 0) if port is None else (port,):
            # `make_server` exits the process if it cannot open a port. An open socket avoids this.
            with suppress(OSError), socket.create_server((_HOST, number)) as listening:
                own, fd = listening.getsockname()[1], listening.fileno()
                self._server = make_server(
                    _HOST, own, app, threaded=True, request_handler=_Handler, fd=fd
                )
                app.config["PORT"] = own
                self.url = f"http://{_HOST}:{own}/{token}/"
                return
        raise UserError(f"--port {port or PORT}: cannot be used; choose another port")

    def serve(self) -> None:
        """Answer requests until the process is interrupted (Ctrl-C)."""
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop `serve`, from another thread."""
        self._server.shutdown()


class _Handler(WSGIRequestHandler):
    """A request handler without a log, because addresses contain the secret."""

    timeout = 30  # seconds that a connection may be idle

    def log(self, type: str, message: str, *args: Any) -> None:
        pass

    def version_string(self) -> str:
        return "paraloom"


def _application(session: Session, token: str, values: dict[str, str]) -> Flask:
    app = Flask(__name__, static_folder=None, template_folder=str(PAGE))
    app.config["MAX_CONTENT_LENGTH"] = _BODY
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False

    @app.before_request
    def check() -> None:
        hosts = [f"{name}:{app.config['PORT']}" for name in (_HOST, "localhost")]
        if request.headers.get("Host") not in hosts:  # protects against DNS rebinding
            abort(403, f"wrong host; the address must begin with http://{hosts[0]}")
        given = request.path.split("/")[1]
        (request.view_args or {}).pop("token", None)
        if not secrets.compare_digest(given.encode(), token.encode()):
            abort(403, "wrong address; open the address that paraloom judge prints")
        if request.method not in ("GET", "HEAD"):
            site = request.headers.get("Sec-Fetch-Site", "same-origin")
            own = request.headers.get("Origin") in [f"http://{host}" for host in hosts]
            if not own or site != "same-origin":
                abort(403, "wrong origin")
            if request.content_length is None:
                abort(411)
            if request.mimetype != "application/json":
                abort(415)

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    @app.errorhandler(HTTPException)
    @app.errorhandler(UserError)
    @app.errorhandler(OSError)
    def refuse(error: Exception) -> tuple[Response, int]:
        if isinstance(error, HTTPException):
            return jsonify(error=error.description), error.code or 500
        return jsonify(error=str(error)), 400 if isinstance(error, UserError) else 500

    @app.get("/<token>/")
    def page() -> str:
        return render_template("index.html", run=session.run, scale=session.scale, **values)

    @app.get("/<token>/<name>")
    def file(name: str) -> Response:
        if name not in ("judge.js", "style.css", "icon.svg"):
            abort(404)
        return send_from_directory(PAGE, name)

    @app.get("/<token>/state")
    def state() -> Response:
        return jsonify(session.state(request.args.get("judge", "")))

    def body(kind: type[Body]) -> Body:
        try:
            return kind.model_validate_json(request.get_data())
        except ValidationError as error:
            first = error.errors()[0]
            abort(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")

    @app.post("/<token>/judge")
    def judge() -> Response:
        return jsonify(session.judge(body(SentJudgment)))

    @app.post("/<token>/undo")
    def undo() -> Response:
        return jsonify(session.undo(body(Target)))

    return app
