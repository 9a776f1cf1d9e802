"""The exception for errors that a user can correct."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_EXTRAS = {  # extras in pyproject.toml, and the modules that each extra installs
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
    """An error that the user can correct, such as a bad row or configuration key, or a full disk.

    The message is one line that names the cause and, if possible, the remedy. The command line
    prints the message without a traceback and exits with code 2.
    """


def one_line(text: object) -> str:
    """Replace white space by single spaces and keep the first 200 characters."""
    return " ".join(str(text).split())[:200]


class EmptyFileError(UserError):
    """A file has no rows. Callers may catch this error where empty shards are allowed."""


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Add the note `what`, the name of the data that is read, to every exception in the block.

    The command line prints the note before the error's message.
    """
    try:
        yield
    except BaseException as error:
        error.add_note(str(what))
        raise


@contextmanager
def in_one_line(what: str) -> Iterator[None]:
    """Convert a library's errors in the block to a UserError whose message begins with `what`.

    `SystemExit` and the panics of Rust libraries are converted, too.
    """
    try:
        yield
    except UserError:
        raise
    except BaseException as error:  # PyO3 raises panics as `PanicException`, a BaseException
        failed = isinstance(error, Exception | SystemExit)
        if not failed and type(error).__name__ != "PanicException":
            raise
        reason = getattr(error, "strerror", None)  # from the operating system
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
