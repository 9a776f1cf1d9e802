"""All printing for people, on standard output and standard error.

Sentences, names and messages may come from anywhere, and a terminal obeys escape sequences. So
control characters are made visible instead of sent.
"""

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

INTERRUPTED = "paraloom: interrupted; the same command resumes"
"""Printed after Ctrl-C has ended a command."""

# C0 without tab and line feed, DEL, C1; overrides of text direction; line and paragraph separators;
# halves of surrogate pairs, which cannot be encoded.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The text with control characters in a visible form; tabs and line feeds stay.

    >>> visible("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return _CONTROL.sub(_escaped, text)


def on_one_line(text: str) -> str:
    r"""Apply `visible`, and show line feeds as `\n`."""
    return visible(text).replace("\n", "\\n")


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class Lossy:
    """A stream for messages and logs that ignores write errors (a full disk, a closed pipe).

    A failed write must not end a run, nor hide an error that Beam prints before reporting it.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, if possible."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if possible."""
        with suppress(OSError):
            self._stream.flush()

    def close(self) -> None:
        """Close; unwritten text is lost."""
        with suppress(OSError):
            self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def nothing_printed() -> Iterator[None]:
    """Discard what libraries in C write to the standard output."""
    flush, kept = ctypes.CDLL(None).fflush, os.dup(1)
    with Path(os.devnull).open("wb") as nothing:
        flush(None)
        os.dup2(nothing.fileno(), 1)
        try:
            yield
        finally:
            flush(None)
            os.dup2(kept, 1)
            os.close(kept)


def say(line: object, stream: IO[str] | None = None) -> None:
    """Print a one-line message on standard error, or on `stream`."""
    print(on_one_line(str(line)), file=stream or sys.stderr, flush=True)


def show(text: object = "", stream: IO[str] | None = None) -> None:
    """Print a result on standard output, or on `stream`."""
    print(visible(str(text)), file=stream, flush=True)


def not_text(text: str) -> str | None:
    """Why a text cannot be a path or be written as UTF-8; None if it can."""
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None
