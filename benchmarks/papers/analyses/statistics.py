"""Statistics of corpora side by side, as in ParaNMT's Table 2.

Two passes: the first counts words (and parses) for the entropies and the IDF; the second computes
means over sentences and pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from rich.table import Table

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import receipts
from paraloom.beam_jobs.storage.remote import localise
from paraloom.beam_jobs.transforms.equal_texts import row_hash
from paraloom.models.errors import UserError, reading
from paraloom.models.hashing import threshold
from paraloom.models.languages import ENGLISH, short_code
from paraloom.models.text.idf import COUNTS, WordCounts, count_words, idf_table, merge_counts
from paraloom.models.text.parses import Parser
from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import WordVectors, load_vectors
from paraloom.papers.analyses.moments import Moments
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, write_json
from paraloom.pipeline.run.folder import as_made, is_run, read_run

SIDES = ("reference", "translation")
SAMPLED = 100_000
"""Approximate maximum of pairs for the entropies, sampled by a hash of their texts, as in the
paper: the entropy of words grows with the number of sentences, and parsing is slow."""

_BATCH = 16_384  # rows in memory
_MERGED = 64  # so many batches' counts are kept before they are merged
_GENRE = r"^(?P<genre>[A-Za-z][^-:]*)-.*-s[0-9]+$"  # CzEng's ids begin with the genre
_FIRST = [
    f"{side}_{kind}"
    for kind in ("tokens", "idf", "vocabulary_entropy", "parse_entropy")
    for side in SIDES
]


class Corpus(NamedTuple):
    """Parquet files with references and translations."""

    files: Sequence[str]
    language: str = ENGLISH

    @property
    def pairs(self) -> int:
        """The number of rows."""
        return sum(_open(file).metadata.num_rows for file in self.files)


def describe(
    corpora: Sequence[Corpus], *, parser: Parser | None = None, idf: WordVectors | None = None
) -> list[dict[str, Moments]]:
    """The statistics of every corpus, by name.

    Args:
        parser: gives the parses; None leaves their entropy out.
        idf: None counts words over the references of all corpora together.

    Returns:
        tokens, IDF (of sentences) and entropies (of words, of parses) of both sides, and every
        score of the corpus: mean and standard deviation. The mean of `genre_<name>` is the share of
        CzEng's pairs that have this genre.
    """
    counts = [_count(corpus, parser) for corpus in corpora]
    documents = [each.pop("documents") for each in counts]
    idf = idf or idf_table(merge_counts(documents))
    return [
        {**_measure(corpus, idf), **_of_counts(of)}
        for corpus, of in zip(corpora, counts, strict=True)
    ]


def _count(corpus: Corpus, parser: Parser | None) -> dict[str, WordCounts]:
    """The counts of words, parses and genres, and of the words of all references (`documents`)."""
    share = min(1.0, SAMPLED / max(corpus.pairs, 1))
    parts = defaultdict[str, list[WordCounts]](list)
    parts["documents"] = []
    for batch in _batches(corpus, lambda field: field.name == "id"):
        hashes = row_hash(*(batch[side] for side in SIDES))[:, 0]
        sampled = pa.array(hashes <= threshold(share))
        for side in SIDES:
            texts = batch[side].filter(sampled)
            parts[f"{side}_vocabulary"].append(count_words(texts, corpus.language))
            if parser:
                parses = pa.array(top_levels(parser, texts.to_pylist()), pa.string())
                parts[f"{side}_parse"].append(_count_kinds(parses))
        parts["documents"].append(count_words(batch["reference"], corpus.language))
        if "id" in batch:
            parts["genre"].append(_count_kinds(genres(batch["id"]).drop_null()))
        for name, several in parts.items():
            if len(several) > _MERGED:
                parts[name] = [merge_counts(several)]
    return {name: merge_counts(several) for name, several in parts.items()}


def _of_counts(counts: Mapping[str, WordCounts]) -> dict[str, Moments]:
    """The entropies, and the share of each genre, the most frequent first."""
    found = {}
    for name, of in counts.items():
        occurrences = of.table["occurrences"].to_numpy()
        if name != "genre":
            found[f"{name}_entropy"] = entropy(occurrences)
            continue
        ones = dict(zip(of.table["word"].to_pylist(), occurrences.tolist(), strict=True))
        for genre, often in Counter(ones).most_common():  # values: 1 for its pairs, else 0
            share = often / occurrences.sum()
            found[f"genre_{genre}"] = Moments(int(occurrences.sum()), share, often * (1 - share))
    return found


def entropy(occurrences: np.ndarray) -> Moments:
    """Moments of −ln p over all occurrences: the mean is the entropy of the counts, in nats.

    p is the count of a kind, divided by the number of all occurrences.

    >>> round(float(entropy(np.array([1, 1, 2])).mean / np.log(2)), 6)
    1.5
    """
    kinds = occurrences[occurrences > 0]
    return Moments.of(np.log(kinds.sum() / kinds), kinds)


def _measure(corpus: Corpus, idf: WordVectors) -> dict[str, Moments]:
    """The moments of scores and sentences."""
    total = defaultdict[str, Moments](Moments)
    for batch in _batches(corpus, lambda field: pa.types.is_floating(field.type)):
        found = {}
        for name, column in batch.items():
            if pa.types.is_floating(column.type):
                values = column.drop_null().to_numpy(zero_copy_only=False)
                found[name] = Moments.of(values[np.isfinite(values)])
        # Last, since a column may have the name of a statistic
        reference, translation = (batch[side] for side in SIDES)
        pairs = PairText(reference, translation, language=corpus.language)
        for name, moments in {**found, **sentence_moments(pairs, idf)}.items():
            total[name] += moments
    return dict(total)


def sentence_moments(pairs: PairText, idf: WordVectors) -> dict[str, Moments]:
    """Moments of each side's number of tokens and mean IDF; empty sentences have no IDF.

    An unknown word has the value of the row for unknown words, or 0 if there is no such row.
    """
    of_word = idf.at(idf.rows(pairs.vocabulary))[:, 0]
    found = {}
    for name, side in zip(SIDES, (pairs.reference, pairs.translation), strict=True):
        sums = np.bincount(side.rows, of_word[side.ids], minlength=len(side.lengths))
        some = side.lengths > 0
        found[f"{name}_tokens"] = Moments.of(side.lengths)
        found[f"{name}_idf"] = Moments.of(sums[some] / side.lengths[some])
    return found


def top_levels(parser: Parser, texts: Iterable[str]) -> Iterator[str]:
    """The top two levels of the dependency parse of each text that has a token.

    The paper takes the levels of constituency parses, which spaCy does not produce. Here they are
    the root and its direct dependents, from left to right: the relation of each dependent, and the
    part of speech of the root. `A dog runs fast.` gives `nsubj VERB advmod punct`; ` | ` separates
    sentences.
    """
    for doc in parser.parse(text for text in texts if len(text) <= parser.pipeline.max_length):
        roots = [token for token in doc if token.head.i == token.i]
        if roots:
            yield " | ".join(map(_dependents, roots))


def _dependents(root: Any) -> str:
    around = sorted([root, *root.children], key=lambda token: token.i)
    return " ".join(token.dep_ if token.i != root.i else token.pos_ or "ROOT" for token in around)


def genres(ids: pa.Array) -> pa.StringArray:
    """The genre that each of CzEng's ids begins with; null for other ids.

    Files of CzEng 1.6 (`data.plaintext-format/00train.gz` …) mix genres, so their names have none.

    >>> genres(pa.array(["subtitlesM-b2-00train-f000001-s8", "captions.cs:7"])).to_pylist()
    ['subtitlesM', None]
    """
    return pc.struct_field(pc.extract_regex(ids.cast(pa.string()), _GENRE), "genre")


def _count_kinds(values: pa.StringArray) -> WordCounts:
    """Count whole values, without tokenising them."""
    counted = values.value_counts()
    words, occurrences = counted.field("values"), counted.field("counts")
    return WordCounts(len(values), pa.table([words, occurrences, occurrences], schema=COUNTS))


def _open(path: str) -> pq.ParquetFile:
    with reading(path):
        file = pq.ParquetFile(localise(path), memory_map=True)
    if missing := set(SIDES).difference(file.schema_arrow.names):
        raise UserError(f"{path}: has no column {min(missing)}")
    return file


def _batches(corpus: Corpus, more: Callable[[pa.Field], bool]) -> Iterator[dict[str, pa.Array]]:
    """The texts and the wanted other columns, in batches of rows."""
    for path in corpus.files:
        file = _open(path)
        columns = [*SIDES, *(field.name for field in file.schema_arrow if more(field))]
        with reading(path):
            for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
                read = {name: batch[name] for name in columns}
                for side in SIDES:
                    read[side] = pc.fill_null(read[side].cast(pa.string()), "")
                yield read


def find_corpus(path: str) -> list[str]:
    """The Parquet files of a corpus: of a run, in a folder, or a single file."""
    if path.endswith(".parquet"):
        return [path]
    of_run = is_run(path)
    folder = storage.join(path, "corpus") if of_run else path
    names = [name for name in storage.names(folder) if name.endswith(".parquet")]
    files = [shard.path for receipt in receipts(folder) for shard in receipt.shards]
    files = files or [storage.join(folder, name) for name in names]
    if not files:
        what = (
            "the run has no corpus yet; name the folder of a stage, such as its score/"
            if of_run
            else "neither a run nor a Parquet file nor a folder of such files"
        )
        raise UserError(f"{path}: {what}")
    return files


def command(
    corpora: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS",
            help="Run folder, Parquet file, or folder of Parquet files with the columns reference "
            "and translation.",
        ),
    ],
    spacy: Annotated[
        str | None,
        typer.Option(metavar="PIPELINE", help="Name or folder of a spaCy pipeline with a parser."),
    ] = None,
    idf: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="File with the IDF of words (`word idf`), such as a run's idf/idf.txt.",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(metavar="CODE", help="Language of corpora that are not in a run's folder."),
    ] = ENGLISH,
    json: JsonFile = None,
) -> None:
    """Print length, IDF, entropies and scores of corpora side by side."""
    given = {p: Corpus(find_corpus(p), _language(p) or short_code(language)) for p in corpora}
    table = load_vectors(Path(idf)) if idf else None
    if table and table.dim != 1:
        raise UserError(f"{idf}: {table.dim} numbers per word, but an IDF is one number")
    found = describe([*given.values()], parser=Parser(spacy) if spacy else None, idf=table)
    results = {
        "corpora": [
            {
                "name": name,
                "pairs": corpus.pairs,
                "statistics": {key: _values(of.get(key)) for key in _names([of])},
            }
            for (name, corpus), of in zip(given.items(), found, strict=True)
        ],
        "idf": idf or "counted over the references of all these corpora",
        "spacy": spacy,
    }
    console(max(120, 40 + 26 * len(given))).print(_table(results))
    write_json(json, results)


def _language(path: str) -> str | None:
    """The language of the run in a folder or above it."""
    folder = path.rstrip("/")
    for _ in range(5):  # RUN/rounds/2/corpus/part-00000.parquet
        if is_run(folder):
            return as_made(read_run(folder)).config.language
        folder, slash, _ = folder.rpartition("/")
        if not slash:
            break
    return None


def _table(results: Mapping[str, Any]) -> Table:
    """The corpora side by side: mean ± standard deviation."""
    corpora, spacy = results["corpora"], results["spacy"]
    rows = [["pairs", *(f"{corpus['pairs']:,}" for corpus in corpora)]]
    for name in _names([corpus["statistics"] for corpus in corpora]):
        rows.append([name, *(_cell(corpus["statistics"].get(name)) for corpus in corpora)])
    title, names = "Statistics: mean ± standard deviation", [corpus["name"] for corpus in corpora]
    shown = number_table(title, "", numbers=names, rows=rows)
    parses = f"root and its dependents, by {spacy}" if spacy else "left out (–) without --spacy"
    shown.caption_justify = "left"
    shown.caption = (
        "Tokens and IDF: of sentences. Entropies: of −ln p, in nats, over words and over parses of "
        f"at most about {SAMPLED:,} pairs. Genres: shares of pairs, by CzEng's ids. "
        f"IDF: {results['idf']}. Parses: {parses}."
    )
    return shown


def _names(found: Sequence[Mapping[str, object]]) -> list[str]:
    """The names of all statistics: first what every corpus has, then the scores of some."""
    return list(dict.fromkeys([*_FIRST, *(name for of in found for name in of)]))


def _values(of: Moments | None) -> dict[str, float] | None:
    if of is None or not of.count:
        return None
    return {"mean": of.mean, "deviation": of.deviation, "count": of.count}


def _cell(values: Mapping[str, float] | None) -> str:
    return "–" if values is None else f"{values['mean']:.3f} ± {values['deviation']:.3f}"
