"""Where a release comes from: its run's manifest without paths and secrets; checksums."""

import re
import shlex
from pathlib import Path, PurePath
from stat import S_ISREG
from typing import Any

from models.errors import UserError
from models.files import digest, read_regular
from pipeline.records import RunRecord, ScoreRecord

SUMS = "SHA256SUMS"
HIDDEN = "removed"

_PATH = re.compile(r"(~|\.\.|[A-Za-z]:)?[/\\]|[A-Za-z][A-Za-z0-9+.-]*://")
"""The beginning of a path that is absolute, leaves the folder of the run, or has a host."""

_PATH_IN_TEXT = re.compile(r"(?<![\w./:])(?:~|[A-Za-z]:)?[/\\](?:[^/\\\s]+[/\\])+")
"""The folders of an absolute path within a text."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORD = re.compile(
    r"auth|authori[sz]ation|secrets?|passw(or)?ds?|passphrases?|pwd|credentials?|cookies?|bearer"
    r"|(api|access|private|secret|auth|ssh)(keys?|tokens?)"
)
"""A word of which one makes a key that of a secret."""

_SECRET = re.compile(
    r"hf_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{12,}|gh[a-z]_[A-Za-z0-9]{20,}|sk-[\w-]{20,}"
    r"|-----BEGIN[^-]*PRIVATE KEY"
)
_PASSWORD_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")


def cleaned(value: Any) -> Any:
    """JSON values without secrets and without the folders of this machine; names of files stay.

    >>> cleaned({"paths": ["/home/me/a.gz", "s3://key:word@host/b.gz"], "token": "x", "beam": 2})
    {'paths': ['a.gz', 'b.gz'], 'token': 'removed', 'beam': 2}
    """
    if isinstance(value, dict):
        return {
            _text(key): HIDDEN if of is not None and _is_secret(key, of) else cleaned(of)
            for key, of in value.items()
        }
    if isinstance(value, list | tuple):
        return [cleaned(item) for item in value]
    return _text(value) if isinstance(value, str) else value


def _is_secret(key: str, value: Any) -> bool:
    """Whether a value is a secret by its key: `auth`, `apiKey`, `private_key`, `hub-token`, ….

    `key` alone is that of a stage; the keys of counts and ratios hold `token` before other words.
    """
    if re.search(r"[/\\:]", key):  # a path or an address
        return False
    words = [word.lower() for word in _WORD.findall(key)]
    return (
        any(_SECRET_WORD.fullmatch(word) for word in words)
        or words[-1:] == ["token"]
        or ("token" in words and isinstance(value, str))
        or (len(words) > 1 and ("key" in words or "keys" in words))
    )


def _text(text: str) -> str:
    if _SECRET.search(text):
        return HIDDEN
    if _PATH.match(text):
        return re.split(r"[/\\]", text.partition("?")[0].rstrip("/\\"))[-1]
    return _PATH_IN_TEXT.sub("", _PASSWORD_IN_URL.sub("", text))


def without_arguments(record: RunRecord) -> RunRecord:
    """The record with the names of the programs that score, not what they are called with."""
    record = record.model_copy(deep=True)
    commands = record.config.score.commands
    scorers = [stage.scorers for stage in record.stages.values() if isinstance(stage, ScoreRecord)]
    for name, command in commands.items():
        commands[name] = program = PurePath(shlex.split(str(command))[0]).name
        for of in scorers:
            if name in of:
                of[name].meaning = f"computed by the program {program}"
    return record


def files_of(folder: Path) -> list[str]:
    """The paths of all that is in a release, sorted, without the folders at its top."""
    top = [path for path in folder.glob("*") if path.is_symlink() or not path.is_dir()]
    return sorted(path.relative_to(folder).as_posix() for path in (*top, *folder.glob("*/*")))


def write_sums(folder: Path) -> str:
    """Write the checksums of all files, in the form that `sha256sum -c` reads; returns them."""
    text = "".join(f"{digest(folder / name)}  {name}\n" for name in files_of(folder))
    (folder / SUMS).write_text(text, encoding="utf-8")
    return text


def read_sums(folder: Path) -> str:
    """What `write_sums` wrote.

    Raises:
        OSError, ValueError: it cannot be read.
    """
    return read_regular(folder / SUMS).decode("utf-8")


def first_change(folder: Path) -> str | None:
    """The first file of a release that is not as it was written, or not of the release.

    A release has regular files only, in one level of folders: `--push` would send what a link
    leads to, and a pipe is never read to its end.

    Raises:
        UserError: a file cannot be read.
    """
    try:
        lines = read_sums(folder).splitlines()
        sums = {name: sum_ for sum_, name in (line.split("  ", 1) for line in lines)}
    except (OSError, ValueError):
        return SUMS
    names = files_of(folder)
    for name in sorted({*sums, *names, SUMS}):
        if name not in names or not S_ISREG((folder / name).lstat().st_mode):
            return name
        if name != SUMS and digest(folder / name) != sums.get(name):
            return name
    return None


def check_no_traces(name: str, text: str) -> None:
    """Check a file that people read.

    Raises:
        UserError: it holds a secret, or a path below the user's home.
    """
    home = f"{Path.home()}/".replace("//", "/")
    if _SECRET.search(text) or (home != "/" and home in text):
        raise UserError(
            f"{name}: would hold a secret or a path of this machine; look at the configuration of "
            "the run"
        )
