"""Converts errors of commands into one line."""

import os
import time
import traceback
from pathlib import Path

import typer

from paraloom.models.errors import UserError, missing_extra
from paraloom.models.files import user_cache

_MEMORY = ("MemoryError", "out of memory", "llocate memory", "bad_alloc")
"""Parts of messages about lack of memory, since torch has no class for these errors on a CPU."""


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused an error. Some C modules raise another error for Ctrl-C."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def in_a_line(error: BaseException) -> str:
    """Return an error as one line. Write the traceback of an unexpected error to a log file."""
    if isinstance(error, typer.TyperException):
        return _usage(error)
    notes = reversed(getattr(error, "__notes__", ()))
    where = "".join(f"{' '.join(note.split())}: " for note in notes)
    if isinstance(error, UserError):
        return f"{where}{error}"
    text = f"{type(error).__name__}: {error}".strip()
    if known := missing_extra(text):
        return f"{where}{known}"
    if any(words in text for words in _MEMORY):
        return f"{where}out of memory; `paraloom estimate` shows how much a run needs"
    if isinstance(error, OSError):
        name = error.filename if isinstance(error.filename, str) else None
        what = f"{name}: cannot be used" if name else "a file cannot be read or written"
        return f"{where}{what} ({error.strerror or error})"
    last = text.splitlines()[-1][:200]  # last line of a worker's traceback
    return f"{where}{last} ({_log(error)})"


def _usage(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".?").replace(". Did", ": did")
    path = getattr(getattr(error, "ctx", None), "command_path", "paraloom")
    command = path.removeprefix("paraloom").strip()
    hint = f"see {path} --help"
    return f"{command}{': ' if command else ''}{message[0].lower()}{message[1:]}; {hint}"


def _log(error: BaseException) -> str:
    folder = user_cache() / "errors"
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("".join(traceback.format_exception(error)), errors="replace")
    except OSError as full:
        return f"the traceback could not be written to {path}: {full.strerror or full}"
    return f"the traceback is in {path}; if the input is valid, please report this error"
