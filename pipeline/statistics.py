"""Statistics of several corpora side by side, as in ParaNMT's Table 2."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from paraloom.beam_jobs.analysis import statistics
from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.shards import receipts
from paraloom.models.errors import UserError
from paraloom.models.languages import ENGLISH
from paraloom.pipeline.console import number_table
from paraloom.pipeline.records import Lenient

VERSION = statistics.VERSION
"""Bump when the same corpora give other values."""

_FIRST = [
    f"{side}_{kind}"
    for kind in ("tokens", "idf", "vocabulary_entropy", "parse_entropy")
    for side in ("reference", "translation")
]


class Spread(Lenient):
    """Mean, standard deviation and number of values."""

    mean: float
    deviation: float
    count: int


class CorpusStatistics(Lenient):
    """Statistics of one corpus; None for those that it does not have."""

    name: str
    pairs: int
    statistics: dict[str, Spread | None]


class Statistics(Lenient):
    """Several corpora, and where the IDF and the parses come from."""

    corpora: list[CorpusStatistics]
    idf: str
    spacy: str | None = None


def find_corpus(path: str) -> list[str]:
    """The Parquet files of a corpus: of a run, in a folder, or a single file."""
    if path.endswith(".parquet"):
        return [path]
    is_run = storage.exists(storage.join(path, "manifest.json"))
    folder = storage.join(path, "corpus") if is_run else path
    names = [name for name in storage.names(folder) if name.endswith(".parquet")]
    files = [shard.path for receipt in receipts(folder) for shard in receipt.shards]
    files = files or [storage.join(folder, name) for name in names]
    if not files:
        what = (
            "the run has no corpus yet; name the folder of a stage, such as its score/"
            if is_run
            else "neither a run nor a Parquet file nor a folder of such files"
        )
        raise UserError(f"{path}: {what}")
    return files


def describe(
    corpora: Mapping[str, Sequence[str]],
    arguments: Sequence[str] = (),
    *,
    spacy: str | None = None,
    idf: str | None = None,
    languages: Mapping[str, str] | None = None,
    folder: str = "",
) -> Statistics:
    """The statistics of corpora (name → Parquet files).

    Args:
        spacy: the pipeline that parses; None leaves the entropy of parses out.
        idf: IDF in text form; None counts words over the references of all corpora together.
        languages: the corpora's, by name; English is the default.
        folder: for intermediate files, if it is in an object store; else they are temporary.
    """
    languages = languages or {}
    blocks = [
        block
        for number, (name, files) in enumerate(corpora.items())
        for block in statistics.find_blocks(number, files, languages.get(name, ENGLISH))
    ]
    with tempfile.TemporaryDirectory() as here:
        output = folder if storage.is_remote(folder) else str(Path(here) / "statistics")
        found = statistics.run(blocks, output, arguments, spacy=spacy, idf=idf)
    found += [{}] * (len(corpora) - len(found))
    return Statistics(
        corpora=[
            CorpusStatistics(
                name=name,
                pairs=sum(block.rows for block in blocks if block.corpus == number),
                statistics={
                    key: Spread(mean=m.mean, deviation=m.deviation, count=m.count)
                    if (m := of.get(key)) and m.count
                    else None
                    for key in _names([of])
                },
            )
            for number, (name, of) in enumerate(zip(corpora, found, strict=True))
        ],
        idf=idf or "counted over the references of all these corpora",
        spacy=spacy,
    )


def table(results: Statistics) -> Table:
    """The corpora side by side: mean ± standard deviation."""
    corpora = results.corpora
    rows = [["pairs", *(f"{corpus.pairs:,}" for corpus in corpora)]]
    for name in _names([corpus.statistics for corpus in corpora]):
        rows.append([name, *(_cell(corpus.statistics.get(name)) for corpus in corpora)])
    title, names = "Statistics: mean ± standard deviation", [corpus.name for corpus in corpora]
    shown = number_table(title, "", numbers=names, rows=rows)
    parses = (
        f"Parses: root and its dependents, by {results.spacy}."
        if results.spacy
        else "Entropy of parses is left out (–): name a spaCy pipeline with --spacy, in a "
        "configuration with statistics.spacy."
    )
    shown.caption_justify = "left"
    shown.caption = (
        "Tokens and IDF: of sentences. Entropies: of −ln p, in nats, over words and over parses of "
        f"at most about {statistics.SAMPLED:,} pairs. Genres: shares of pairs, by CzEng's ids. "
        f"IDF: {results.idf}. {parses}"
    )
    return shown


def _names(found: Sequence[Mapping[str, object]]) -> list[str]:
    """The names of all statistics: first what every corpus has, then the scores of some."""
    return list(dict.fromkeys([*_FIRST, *(name for of in found for name in of)]))


def _cell(values: Spread | None) -> str:
    return "–" if values is None else f"{values.mean:.3f} ± {values.deviation:.3f}"
