"""The exception for errors that a user can correct."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_EXTRAS = {  # of the package (pyproject.toml), by the libraries that each brings
    "chat": ("openai",),
    "dataflow": ("google",),
    "fairseq": ("fairseq", "fairseq_cli"),
    "judge": ("flask", "krippendorff"),
    "s3": ("boto3", "botocore"),
    "spacy": ("spacy",),
    "triplets": ("faiss",),
    "translate": ("ctranslate2", "sacrebleu", "sentencepiece", "transformers"),  # `train`, too
    "train": ("safetensors", "sentence_transformers", "sklearn", "tokenizers", "torch"),
}
_MISSING = re.compile(r"No module named '(\w+)")


class UserError(Exception):
    """An error outside the program: in a file, a row, a configuration key, on a disk.

    The message is one line that names the cause and, if there is one, the remedy. The command line
    prints it without a traceback and exits with code 2.

    >>> raise UserError("data/a.gz: no such file")
    Traceback (most recent call last):
    paraloom.models.errors.UserError: data/a.gz: no such file
    """


def one_line(text: object) -> str:
    """The beginning of a text, on one line."""
    return " ".join(str(text).split())[:200]


class EmptyFileError(UserError):
    """A file has no rows, as a shard of a data set may."""


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Note in any exception what was being read; the command line begins its message with it.

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
    """Turn a library's errors, which have many types, into a UserError that begins with `what`.

    A library in Rust panics with a type of its own that is no `Exception`. A `SystemExit` in code
    that is called is an error, too.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        failed = isinstance(error, Exception | SystemExit)
        if not failed and type(error).__name__ != "PanicException":
            raise
        reason = getattr(error, "strerror", None)  # of the operating system
        reason = reason or f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"{what} ({reason})") from error


def missing_extra(text: str) -> str | None:
    """What to install, if an error's text says that a library of an extra is missing.

    >>> missing_extra("ModuleNotFoundError: No module named 'sklearn.svm'")
    "sklearn is not installed: pip install 'paraloom[train]'"
    """
    found = _MISSING.search(text)
    for extra, libraries in _EXTRAS.items():
        if found and found[1] in libraries:
            return f"{found[1]} is not installed: pip install 'paraloom[{extra}]'"
    return None
