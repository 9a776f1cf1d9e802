"""Printing of text, which may come from untrusted files.

A terminal would execute escape sequences in a text, so control characters are made visible.
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

# In order: C0 except tab and line feed, DEL and C1, line separators and overrides of the text
# direction, isolates of the text direction, and surrogates, which cannot be encoded.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Replace control characters except tabs and line feeds by a visible form.

    >>> visible("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    return _CONTROL.sub(_escaped, text)


def on_one_line(text: str) -> str:
    r"""Apply `visible`, and replace line feeds by `\n`."""
    return visible(text).replace("\n", "\\n")


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class Lossy:
    """A stream for messages and logs. Errors, for example on a full disk, are ignored."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text."""
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with suppress(OSError):
            self._stream.flush()

    def close(self) -> None:
        """Close the stream."""
        with suppress(OSError):
            self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def nothing_printed() -> Iterator[None]:
    """While the block runs, discard what C libraries print on standard output."""
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
    """Return the reason why a text cannot be a path or value, or None if there is no reason."""
    if "\0" in text:
        return "contains a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return None
