"""The metadata of cards, in the format of the Hub."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from huggingface_hub import EvalResult

from paraloom.models.languages import short_code
from paraloom.pipeline.run.records import Correlation, Evaluation

PART_FILES = "part-*.parquet"
"""The pattern of the shards of a corpus."""

HUB_LICENSES = frozenset(Path(__file__).with_name("licenses.txt").read_text("utf-8").split())
"""The licences on https://huggingface.co/docs/hub/repositories-licenses in 2026, except `other`."""


class SplitFiles(NamedTuple):
    """The files of a split in one `Configuration`."""

    name: str
    rows: int
    files: tuple[str, ...]
    size: int  # bytes


class Configuration(NamedTuple):
    """A configuration of a released data set: splits with the same columns, in one folder."""

    name: str
    folder: str
    columns: pa.Schema
    splits: tuple[SplitFiles, ...]


class Release(NamedTuple):
    """The properties of a release that its card shows."""

    license: str  # as the user wrote it
    license_link: str | None  # address or file of a licence that is not on the Hub's list
    repo: str | None  # name on the Hub
    seed: int  # seed of the hash that divides references into splits
    configurations: tuple[Configuration, ...]  # the first configuration is the default
    negatives: tuple[tuple[str, str, int], ...] = ()  # kind, meaning, number of triplets
    neighbours: str = ""  # names of the models that found negatives


def license_name(license: str) -> str:
    """Convert a licence to the form of the Hub's names.

    >>> license_name("CC BY 4.0"), license_name("openrail++") in HUB_LICENSES
    ('cc-by-4.0', True)
    """
    return re.sub(r"[^a-z0-9.+]+", "-", license.lower()).strip("-.")


def license_metadata(license: str | None, link: str | None = None) -> dict[str, str]:
    """Return the metadata of a licence. `license` is None if the licence is unknown.

    >>> license_metadata("MIT"), license_metadata("CzEng: research only", "LICENSE")["license_name"]
    ({'license': 'mit'}, 'czeng-research-only')
    """
    name = license_name(license or "") or "unknown"
    if name in HUB_LICENSES:
        return {"license": name}
    return {"license": "other", "license_name": name, **({"license_link": link} if link else {})}


def hub_languages(codes: Iterable[str]) -> list[str]:
    """Return distinct language codes without regions. Only codes of 2 or 3 letters are returned.

    >>> hub_languages(["en_GB", "cs", "en"])
    ['en', 'cs']
    """
    short = (short_code(code).partition("-")[0] for code in codes)
    return [code for code in dict.fromkeys(short) if re.fullmatch("[a-z]{2,3}", code)]


def eval_results(
    evaluation: Evaluation, model: str, score: str, without: Collection[str] = ()
) -> Iterator[EvalResult]:
    """Yield a model's correlations on each data set, and their means over groups of data sets.

    Values are from -1 to 1. `score` is `cosine`, `dot`, or "" for predicted labels. `without`
    contains excluded data sets, as `<group> <name>`. A group that contains an excluded data set
    has no mean.
    """
    found: dict[str, Correlation | None] = {}
    for group, content in evaluation.groups.items():
        own = {f"{group} {name}": of.models.get(model) for name, of in content.data_sets.items()}
        found |= {name: of for name, of in own.items() if name not in without}
        if content.mean and not own.keys() & {*without}:
            found[f"{group} (mean of {len(own)} data sets)"] = content.mean.get(model)
    for name, of in found.items():
        for kind, value in (("pearson", of.pearson), ("spearman", of.spearman)) if of else ():
            if value is not None:
                key = f"{kind}_{score}" if score else kind
                yield EvalResult(
                    task_type="semantic-similarity",
                    task_name="Semantic Similarity",
                    dataset_type=re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-"),
                    dataset_name=name,
                    metric_type=key,
                    metric_name=key.replace("_", " ").title(),
                    metric_value=round(value / 100, 6),
                )


def mteb_tasks(data_sets: Iterable[str]) -> list[str]:
    """Return the tasks of MTEB that contain some of `data_sets`, given as `<group> <name>`.

    >>> mteb_tasks(["STS 2012 MSRpar", "STS 2012 SMTnews", "STS 2017 en-en", "SICK test", "mine"])
    ['STS12', 'STS17', 'SICK-R']
    """
    groups = {f"STS 20{year}": f"STS{year}" for year in range(12, 18)}
    groups |= {"SICK": "SICK-R", "STS Benchmark": "STSBenchmark"}
    found = (task for name in data_sets for of, task in groups.items() if name.startswith(of))
    return list(dict.fromkeys(found))
