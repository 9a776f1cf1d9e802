"""The exception for errors that a user can correct."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_EXTRAS = {  # the package's extras (pyproject.toml) and their libraries
    "chat": ("openai",),
    "dataflow": ("google",),
    "fairseq": ("fairseq", "fairseq_cli"),
    "judge": ("flask", "krippendorff"),
    "s3": ("boto3", "botocore"),
    "spacy": ("spacy",),
    "mine": ("faiss",),  # also for `triplets`
    "translate": ("ctranslate2", "sacrebleu", "sentencepiece", "transformers"),  # also for `train`
    "train": ("safetensors", "sentence_transformers", "sklearn", "tokenizers", "torch"),
}
_MISSING = re.compile(r"No module named '(\w+)")


class UserError(Exception):
    """An error outside the program: in a file, a row, a configuration key, on a disk.

    The message is one line that names the cause and, if possible, the remedy. The command line
    prints it without a traceback and exits with code 2.

    >>> raise UserError("data/a.gz: no such file")
    Traceback (most recent call last):
    paraloom.models.errors.UserError: data/a.gz: no such file
    """


def one_line(text: object) -> str:
    """Shorten a text to one line."""
    return " ".join(str(text).split())[:200]


class EmptyFileError(UserError):
    """A file has no rows. Raised separately, since some shards of a data set may be empty."""


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Note in any exception what was being read; the command line's message begins with the note.

    >>> with reading("a.json"):
    ...     raise ValueError("line 3: a comma is missing")
    Traceback (most recent call last):
    ValueError: line 3: a comma is missing
    a.json
    """
    try:
        yield
    except BaseException as error:
        error.add_note(str(what))
        raise


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Turn all errors of a library into a UserError that begins with `what`.

    This includes Rust panics, which are no `Exception`, and `SystemExit`.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        failed = isinstance(error, Exception | SystemExit)
        if not failed and type(error).__name__ != "PanicException":
            raise
        reason = getattr(error, "strerror", None)  # from the operating system
        text = str(error).rpartition("from a trusted source.")[2]  # else PyTorch's advice: unpickle
        reason = reason or f"{type(error).__name__}: {one_line(text)}"
        raise UserError(f"{what} ({reason})") from error


def missing_extra(text: str) -> str | None:
    """Return the remedy if an error says that an extra's library is missing.

    >>> missing_extra("ModuleNotFoundError: No module named 'sklearn.svm'")
    "sklearn is not installed: pip install 'paraloom[train]'"
    """
    found = _MISSING.search(text)
    for extra, libraries in _EXTRAS.items():
        if found and found[1] in libraries:
            return f"{found[1]} is not installed: pip install 'paraloom[{extra}]'"
    return None
