"""Data sets of the Hugging Face Hub, divided into subsets and splits as in `datasets`."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any

from fsspec.utils import glob_translate

from paraloom.beam_jobs.bitext.parquet import Parquet
from paraloom.beam_jobs.bitext.rows import Layout, Paths
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import CARD
from paraloom.models.hub import fetch_dataset, is_hub_name
from paraloom.models.structured import front_matter

_CONVERTED = re.compile(r"(?!data/)([^/]+)/(?:partial-)?([^/]+?)(?:-part\d+)?/\d{4}\.parquet")
_SHARD = re.compile(r"^data/([^/]+)-\d{5}-of-\d{5}[^/]*\.[^/]*$")
_WORDS = {
    "train": "train|training",
    "validation": "validation|valid|dev|val",
    "test": "test|testing|eval|evaluation",
}
_BREAK = "[-._ 0-9]"  # characters around a word of `_WORDS` in a name
_WAYS: tuple[Callable[[list[str]], Iterable[str]], ...] = (
    lambda parts: _SHARD.findall("/".join(parts)),
    lambda parts: {split for folder in parts[:-1] for split in _named(folder)},
    lambda parts: _named(parts[-1]),
    lambda parts: ["train"],
)
"""Functions that find splits in a path's parts. The first function with a result is used."""


class Hub(Parquet):
    """One split of a Parquet data set, on the Hub or in a local folder of the same form."""

    name = "hub"

    def group_files(self, paths: Paths, layout: Layout) -> list[tuple[str, ...]]:
        """List the files of each data set. Data sets on the Hub are downloaded."""
        return [(file,) for name in self.listed(paths) for file in _files(name, layout)]


def _files(name: str, layout: Layout) -> list[str]:
    def choose(names: list[str], card: Path) -> list[str]:
        with in_one_line(f"{name}: the metadata `configs` in {CARD} are not in the Hub's form"):
            found = by_split(names, front_matter(card) if card.is_file() else None)
        if files := found.get(layout.subset or "", {}).get(layout.split):
            return files
        known = [
            f"{subset or 'null'} {of}" for subset in sorted(found) for of in sorted(found[subset])
        ]
        if not known:
            raise UserError(f"{name}: has no files that Paraloom can read")
        listed = ", ".join(known)
        raise UserError(f"{name}: input.subset and input.split must name one of {listed}")

    folder = Path(name)
    if is_hub_name(name):
        asked = ("configs", layout.subset, layout.split)
        folder, files = fetch_dataset(name, choose, asked, "input.paths")
    elif folder.is_dir():
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")]
        files = choose(names, folder / CARD)
    else:
        raise UserError(f"input.paths: {name} is neither a folder nor the name of a data set")
    return [str(folder / file) for file in files]


def by_split(names: Iterable[str], card: Any = None) -> dict[str, dict[str, list[str]]]:
    """Group Parquet files by subset and split. The default subset is called "".

    The `configs` in the card's front matter define the subsets. Without `configs`, each folder is a
    subset, unless it is named after a split. If several folders have the same split, `datasets`
    joins their files in the default subset. This function omits the split from the default subset,
    because the folders may differ in language.

    Args:
        names: paths below the folder of the data set.
        card: the front matter of the card, if there is any.

    >>> by_split(["cs-en/train.parquet", "de-en/train.parquet", "de-en/dev.parquet"])[""]
    {'validation': ['de-en/dev.parquet']}
    """
    names = sorted(name for name in names if name.endswith(".parquet"))
    configs = (card or {}).get("configs") or []
    subsets = {config["config_name"]: _configured(config, names) for config in configs}
    converted = [match for name in names if (match := _CONVERTED.fullmatch(name))]
    for match in converted if len(converted) == len(names) and not configs else ():
        subsets.setdefault(match[1], {}).setdefault(match[2], []).append(match[0])
    if subsets:
        default = {"default", *(of["config_name"] for of in configs if of.get("default"))}
        chosen = [of for name, of in subsets.items() if name in default or len(subsets) == 1]
        whole = chosen[0] if len(chosen) == 1 else {}
    else:
        groups = defaultdict(list)
        for name in names:
            groups[_subset(name)].append(name)
        whole = {key: of for key, of in _by_names(names).items() if len({*map(_subset, of)}) == 1}
        subsets = {name: _by_names(group) for name, group in groups.items() if name}
    return {**subsets, "": whole}


def _configured(config: dict[str, Any], names: list[str]) -> dict[str, list[str]]:
    base, files = config.get("data_dir") or ".", config.get("data_files")
    if files is None:
        return _by_names(names, base)
    if isinstance(files, str) or isinstance(files[0], str):
        files = [{"split": "train", "path": files}]
    found: dict[str, list[str]] = {}
    for of in files:
        for glob in [of["path"]] if isinstance(of["path"], str) else of["path"]:
            pattern = posixpath.normpath(posixpath.join(base, glob))
            same = (name for name in names if _hidden(name) == _hidden(pattern))
            if fitting := [name for name in same if re.match(glob_translate(pattern), name)]:
                found.setdefault(of["split"], []).extend(fitting)
            elif glob.endswith(".parquet") and not has_magic(glob):
                raise UserError(f"{glob}: {CARD} names this file, but the data set lacks it")
    return found


def _hidden(path: str) -> int:
    """Count the hidden folders and files in a path, which wildcards do not match."""
    parts = path.split("/")
    return sum(part[0] == "." for part in parts) + sum(part[:2] == "__" for part in parts[:-1])


def _by_names(names: list[str], base: str = ".") -> dict[str, list[str]]:
    for way in _WAYS:
        found: dict[str, list[str]] = {}
        for name in names:
            inner = posixpath.relpath(name, base)
            for split in () if _hidden(inner) else way(inner.split("/")):
                found.setdefault(split, []).append(name)
        if found:
            break
    return found


def _named(part: str) -> list[str]:
    words = ((split, rf"(.*{_BREAK})?({words})({_BREAK}.*)?") for split, words in _WORDS.items())
    return [split for split, pattern in words if re.fullmatch(pattern, part)]


def _subset(name: str) -> str:
    """Return a file's subset: the folders above the split, without `key=value` and `data`."""
    folders = takewhile(lambda folder: not _named(folder), name.split("/")[:-1])
    kept = [folder for folder in folders if "=" not in folder]
    return "/".join(kept[kept[:1] == ["data"] :])
