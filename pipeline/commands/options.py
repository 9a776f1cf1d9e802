"""Options and arguments that several commands share."""

import io
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import typer
from pydantic_core import to_json

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_file, check_writable
from paraloom.models.printing import show


def option(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """Declare an option that has a value."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=help, **more)


_stdout: ContextVar[IO[str]] = ContextVar("stdout")


def _writable(context: typer.Context, file: str | None) -> str | None:
    if file == "-":
        _stdout.set(sys.stdout)
        context.with_resource(redirect_stdout(io.StringIO()))  # discard all output but the JSON
    elif file:
        check_writable(Path(file))
        _check_replaceable(Path(file))
    return file


def _check_replaceable(file: Path) -> None:
    """Raise a UserError if a file has content that does not begin like JSON of `write_json`."""
    if file.is_file():
        with file.open("rb") as stream:
            if stream.read(2) not in (b"", b"{\n", b"[\n", b"{}", b"[]"):
                raise UserError(f"--json {file}: would replace other data; name another file")


def check_unused(context: typer.Context, partner: str, *options: str) -> None:
    """Raise a UserError if the user gave an option that has no effect without `partner`.

    Call this if `partner` is missing. `options` are names of parameters, such as `sentence`.
    """
    for name in options:
        source = context.get_parameter_source(name)
        if source and source.name != "DEFAULT":
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{context.info_name}: {flag} has no effect without {partner}")


def _connected(context: typer.Context, run: str) -> str:
    from paraloom.beam_jobs.engine.options import connect

    connect(context.obj, [run])
    return run


RunFolder = Annotated[
    str, argument("RUN", "Run folder, local or in an object store.", callback=_connected)
]
Named = Annotated[
    str, option("NAME", "Use this named selection instead of the run's corpus.", "--selection")
]
ConfigFile = Annotated[
    str, option("FILE", "Configuration in YAML, or `sample` for the built-in sample.", "--config")
]
Changes = Annotated[
    list[str] | None,
    option(
        "KEY.SUB=VALUE",
        "Set a configuration key, or append to a list with +=. Repeatable.",
        "--set",
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Run the stages of this command again even if they are up to date. For corpus, "
        "these are select and all later stages. Earlier stages are not repeated.",
    ),
]
OnInterrupt = Annotated[
    Literal["leave", "cancel"] | None,
    option(
        "leave|cancel",
        "leave: Ctrl-C leaves a job on Dataflow or Flink running. cancel: Ctrl-C cancels the job. "
        "By default, a command in a terminal asks what to do.",
    ),
]
Model = Annotated[str, option("DIR", "Folder of the encoder.", "--model")]
OpenModels = Annotated[
    list[str],
    option(
        "DIR",
        "An encoder or a sentence-transformers model: a folder or a name on the Hub. Repeatable.",
        "--model",
    ),
]
Sick = Annotated[str | None, option("DIR", "Folder of the SICK files.")]
JsonFile = Annotated[
    str | None,
    option(
        "FILE",
        "Also write the results to a JSON file. With -, print the JSON and nothing else.",
        "--json",
        callback=_writable,
    ),
]


def check_apart(json: str | None, output: str | Path, name: str) -> None:
    """Raise a UserError if `--json` and the option `name` have the same path, `output`."""
    if json and Path(json).resolve() == Path(output).resolve():
        raise UserError(f"--json {json}: is also the path of {name}; name another file")


def beam_options(context: typer.Context, on_interrupt: str | None = None) -> Sequence[str]:
    """Return the options after `--`, followed by `--on_interrupt` if it is set."""
    given: list[str] = context.obj
    return [*given, f"--on_interrupt={on_interrupt}"] if on_interrupt else given


def write_json(file: str | None, results: Any) -> None:
    """Write results to the file of `--json`, if any. NaN and infinite values become null."""
    values = json.loads(to_json(results, inf_nan_mode="null", bytes_mode="base64", fallback=str))
    if file == "-":  # ASCII output works with any encoding and cannot control the terminal
        text = json.dumps(values, indent=1).replace("\x7f", "\\u007f")
        show(text, _stdout.get())
    elif file:
        _check_replaceable(Path(file))  # the command itself may have made the file
        with atomic_file(Path(file)) as path:
            path.write_text(json.dumps(values, indent=1, ensure_ascii=False), encoding="utf-8")
