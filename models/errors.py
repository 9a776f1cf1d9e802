"""The exception for errors that a user can correct."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_EXTRAS = {  # modules that each extra of pyproject.toml installs
    "chat": ("openai",),
    "dataflow": ("google",),
    "fairseq": ("fairseq", "fairseq_cli"),
    "judge": ("flask", "krippendorff"),
    "s3": ("boto3", "botocore"),
    "spacy": ("spacy",),
    "mine": ("faiss",),
    "translate": ("ctranslate2", "sacrebleu", "sentencepiece", "transformers"),
    "train": ("safetensors", "sentence_transformers", "sklearn", "tokenizers", "torch"),
}
_MISSING = re.compile(r"No module named '(\w+)")


class UserError(Exception):
    """An error that the user can correct, such as a wrong configuration key or a full disk.

    The message is one line with the cause and, if possible, the remedy. The command line prints
    the message without a traceback and exits with code 2.
    """


def one_line(text: object) -> str:
    """Replace white space by single spaces and keep the first 200 characters."""
    return " ".join(str(text).split())[:200]


class EmptyFileError(UserError):
    """A file has no rows. Callers that accept empty files may catch this error."""


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Add a note with the name of the data, `what`, to every exception that the block raises."""
    try:
        yield
    except BaseException as error:
        error.add_note(str(what))
        raise


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Convert errors except UserErrors to a UserError whose message begins with `what`."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:  # PyO3 raises panics as `PanicException`, a BaseException
        failed = isinstance(error, Exception | SystemExit)
        if not failed and type(error).__name__ != "PanicException":
            raise
        reason = getattr(error, "strerror", None)
        # PyTorch's message begins with the advice to unpickle the file. Omit this advice.
        text = str(error).rpartition("from a trusted source.")[2]
        reason = reason or f"{type(error).__name__}: {one_line(text)}"
        raise UserError(f"{what} ({reason})") from error


def missing_extra(text: str) -> str | None:
    """Return how to install the library that an error message reports as missing, or None.

    >>> missing_extra("ModuleNotFoundError: No module named 'sklearn.svm'")
    "sklearn is not installed: pip install 'paraloom[train]'"
    """
    found = _MISSING.search(text)
    for extra, libraries in _EXTRAS.items():
        if found and found[1] in libraries:
            return f"{found[1]} is not installed: pip install 'paraloom[{extra}]'"
    return None
