"""The metadata at the beginning of a card, in the form of Hugging Face's Hub."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from huggingface_hub import EvalResult

from paraloom.models.languages import short_code
from paraloom.pipeline.run.records import Correlation, Evaluation

PART_FILES = "part-*.parquet"
"""The pattern of a corpus's part files, for its card."""

HUB_LICENSES = frozenset(Path(__file__).with_name("licenses.txt").read_text("utf-8").split())
"""The Hub's names of licences in February 2026, without `other`, which stands for licences that are
not on its list (https://huggingface.co/docs/hub/repositories-licenses)."""


class SplitFiles(NamedTuple):
    """The files of a split in one configuration, and their size in bytes."""

    name: str
    rows: int
    files: tuple[str, ...]
    size: int


class Configuration(NamedTuple):
    """A selection of columns of a released corpus, in a folder of its own."""

    name: str
    folder: str
    columns: pa.Schema
    splits: tuple[SplitFiles, ...]


class Release(NamedTuple):
    """A corpus as it is published."""

    license: str  # in the user's words
    license_link: str | None  # address or file of its text, if it is not on the Hub's list
    repo: str | None  # name on the Hub, if it has one already
    seed: int  # seeds the hash that divides references into splits
    configurations: tuple[Configuration, ...]  # the first one, with all columns, is the default
    negatives: tuple[tuple[str, str, int], ...] = ()  # per kind: name, meaning, number
    neighbours: str = ""  # the models that found negatives near the anchor


def license_name(license: str) -> str:
    """The name of a licence in the form of the Hub's names; "" without a letter or digit.

    >>> license_name("CC BY 4.0"), license_name("openrail++") in HUB_LICENSES
    ('cc-by-4.0', True)
    """
    return re.sub(r"[^a-z0-9.+]+", "-", license.lower()).strip("-.")


def license_metadata(license: str | None, link: str | None = None) -> dict[str, str]:
    """The metadata of a licence; None stands for an unknown one. `link` leads to the text of a
    licence that the Hub does not list.

    >>> license_metadata("MIT"), license_metadata("CzEng: research only", "LICENSE")["license_name"]
    ({'license': 'mit'}, 'czeng-research-only')
    """
    name = license_name(license or "") or "unknown"
    if name in HUB_LICENSES:
        return {"license": name}
    return {"license": "other", "license_name": name, **({"license_link": link} if link else {})}


def hub_languages(codes: Iterable[str]) -> list[str]:
    """Languages as the Hub names them: codes of two or three letters, each once.

    >>> hub_languages(["en_GB", "cs", "en"])
    ['en', 'cs']
    """
    short = (short_code(code).partition("-")[0] for code in codes)
    return [code for code in dict.fromkeys(short) if re.fullmatch("[a-z]{2,3}", code)]


def eval_results(
    evaluation: Evaluation, model: str, score: str, without: Collection[str] = ()
) -> Iterator[EvalResult]:
    """The results of a model on each data set, and the means; correlations from -1 to 1.

    Args:
        score: the comparison of two sentences, as sentence-transformers names it in metrics:
            `cosine`, `dot`, or empty for predicted labels.
        without: data sets to leave out, as `<group> <name>`, with all means over them.
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
    """The tasks of MTEB that contain these data sets, named `<group> <name>`.

    >>> mteb_tasks(["STS 2012 MSRpar", "STS 2012 SMTnews", "SICK test", "mine dev"])
    ['STS12', 'SICK-R']
    """
    groups = {f"STS 20{year}": f"STS{year}" for year in range(12, 17)}
    groups |= {"SICK": "SICK-R", "STS Benchmark": "STSBenchmark"}
    found = (task for name in data_sets for of, task in groups.items() if name.startswith(of))
    return list(dict.fromkeys(found))
