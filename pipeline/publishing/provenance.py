"""Where a release comes from: what its run's manifest may show; checksums."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.hub import is_hub_name
from paraloom.models.options import InputPath
from paraloom.pipeline.config import Config
from paraloom.pipeline.records import RunRecord, UsedModel

SUMS = "SHA256SUMS"

TEXTS = {
    *("digest", "digests", "key", "sha256", "versions", "revision", "family", "license"),
    *("planned", "wanted", "stage", "meaning", "unit", "where"),
}
"""The keys of texts that a release shows as they are."""

NAMES = {
    *("run", "path", "model", "models", "name", "missing", "idf", "spacy", "scorers", "scorer"),
    *("score", "by", "first", "second", "negative"),
    *("language", "source_language", "target_language"),
}
"""The keys of names and paths, of which it shows the last name."""

_HIDDEN = object()
_SECRET = re.compile(
    r"hf_[A-Za-z0-9]{16,}|AKIA[0-9A-Z]{12,}|gh[a-z]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"
    r"|glpat-[\w-]{16,}|AIza[\w-]{30,}|xox[a-z]-[\w-]{10,}|sk-[\w-]{20,}|://[^/\s@]+@"
    r"|-----BEGIN[^-]*PRIVATE KEY"
)


def public(record: RunRecord) -> RunRecord:
    """The part of a run's record that a release shows."""
    values = record.json_values()
    config = harmless(values.get("config", {}), Config)
    stages = {name: harmless(of.json_values(), type(of)) for name, of in record.stages.items()}
    programs = config.get("score", {}).get("commands", {})
    for name, stage in record.stages.items():
        for scorer in programs.keys() & stages[name].get("scorers", {}).keys():
            meaning = f"computed by the program {programs[scorer]}"
            stages[name]["scorers"][scorer]["meaning"] = meaning
        model = getattr(stage, "model", None)
        if isinstance(model, UsedModel) and model.revision and is_hub_name(model.path):
            stages[name]["model"]["path"] = model.path
    shown = {**harmless(values, RunRecord), "config": config, "stages": stages}
    return RunRecord.model_validate(shown)


def harmless(value: Any, kind: Any, key: str = "") -> Any:
    """JSON values of a type: what it declares, and of texts only choices, `TEXTS` and `NAMES`.

    >>> harmless({"run": "/home/me/runs/a", "token": "x", "seed": 2}, Config)
    {'run': 'a', 'seed': 2}
    """
    if isinstance(value, dict):
        kinds = _kinds(kind, value, key)
        shown = {n: harmless(of, *kinds[n]) for n, of in value.items() if n in kinds}
        return {name: of for name, of in shown.items() if of is not _HIDDEN}
    if isinstance(value, list | tuple):
        return [of for item in value if (of := harmless(item, kind, key)) is not _HIDDEN]
    parts = list(_parts(kind))
    if not isinstance(value, str) or value in parts or key in TEXTS:
        return value
    if key == "commands":
        value = value.strip().partition(" ")[0]
    elif key not in NAMES and not any(isinstance(part, InputPath) for part in parts):
        return _HIDDEN
    return re.split(r"[/\\]", value.partition("?")[0].rstrip("/\\"))[-1]


def _kinds(kind: Any, names: Iterable[str], key: str) -> dict[str, tuple[Any, str]]:
    """The type of each value of a mapping, and the key that decides on its texts."""
    for part in _parts(kind):
        if get_origin(part) is dict:
            return dict.fromkeys(names, (get_args(part)[1], key))
        if isinstance(part, type) and issubclass(part, BaseModel):
            return {
                alias: (field.rebuild_annotation(), name)
                for name, field in part.model_fields.items()
                for alias in (name, field.serialization_alias or name)
            }
    return dict.fromkeys(names, (Any, key))


def _parts(kind: Any) -> Iterator[Any]:
    """A type and all that it is made of, choices too, the outermost first."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


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
    """What `write_sums` wrote."""
    return (folder / SUMS).read_text("utf-8")


def first_change(folder: Path) -> str | None:
    """The first file of a release that is not as it was written, or not of the release.

    A release has regular files only, in one level of folders: `--push` would send what a link
    leads to, and a pipe is never read to its end.
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
    """Check a file that people read."""
    home = f"{Path.home()}/".replace("//", "/")
    if _SECRET.search(text) or (home != "/" and home in text):
        raise UserError(
            f"{name}: would hold a secret or a path of this machine; look at the configuration of "
            "the run"
        )
