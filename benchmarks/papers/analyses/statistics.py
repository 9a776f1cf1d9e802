"""Statistics of corpora side by side, as in ParaNMT's Table 2."""

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

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage.remote import localise
from paraloom.beam_jobs.transforms.equal_texts import row_hash
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.hashing import threshold
from paraloom.models.languages import ENGLISH, short_code
from paraloom.models.text.idf import COUNTS, WordCounts, count_words, idf_table, merge_counts
from paraloom.models.text.parses import Parser
from paraloom.models.text.tokens import PairText
from paraloom.models.text.vectors import WordVectors, load_vectors
from paraloom.papers.analyses.moments import Moments
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, write_json
from paraloom.pipeline.run.folder import as_made, corpus_in, is_run, read_run, shards_in

SIDES = ("reference", "translation")
SAMPLED = 100_000
"""Number of pairs to sample for entropies, as in the paper. Entropies grow with this number."""

_BATCH = 16_384  # number of rows in memory
_MERGED = 64  # number of batches before their counts are merged
_GENRE = r"^(?P<genre>[A-Za-z][^-:]*)-.*-s[0-9]+$"  # CzEng's ids begin with the genre
_KINDS = ("tokens", "idf", "vocabulary_entropy", "parse_entropy")
_FIRST = [f"{side}_{kind}" for kind in _KINDS for side in SIDES]
"""The statistics to print first, for all corpora."""


class Corpus(NamedTuple):
    """A corpus in Parquet files."""

    files: Sequence[str]
    language: str = ENGLISH

    @property
    def pairs(self) -> int:
        """The number of rows."""
        return sum(_open(file).metadata.num_rows for file in self.files)


def describe(
    corpora: Sequence[Corpus], *, parser: Parser | None = None, idf: WordVectors | None = None
) -> list[dict[str, Moments]]:
    """Return the statistics of each corpus (see `_FIRST`), of its scores and of its genres.

    The mean of `genre_<name>` is the share of a genre of CzEng. By default, the IDF of words is
    computed from the references of all corpora.
    """
    counts = [_count(corpus, parser) for corpus in corpora]
    documents = [each.pop("documents") for each in counts]
    idf = idf or idf_table(merge_counts(documents))
    return [
        {**_measure(corpus, idf), **_of_counts(of)}
        for corpus, of in zip(corpora, counts, strict=True)
    ]


def _count(corpus: Corpus, parser: Parser | None) -> dict[str, WordCounts]:
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
    found = {}
    for name, of in counts.items():
        occurrences = of.table["occurrences"].to_numpy()
        if name != "genre":
            found[f"{name}_entropy"] = entropy(occurrences)
            continue
        ones = dict(zip(of.table["word"].to_pylist(), occurrences.tolist(), strict=True))
        for genre, often in Counter(ones).most_common():  # a value is 1 in this genre, else 0
            share = often / occurrences.sum()
            found[f"genre_{genre}"] = Moments(int(occurrences.sum()), share, often * (1 - share))
    return found


def entropy(occurrences: np.ndarray) -> Moments:
    """Return the moments of −ln p, where p are relative frequencies. The mean is in nats.

    >>> round(float(entropy(np.array([1, 1, 2])).mean / np.log(2)), 6)
    1.5
    """
    kinds = occurrences[occurrences > 0]
    return Moments.of(np.log(kinds.sum() / kinds), kinds)


def _measure(corpus: Corpus, idf: WordVectors) -> dict[str, Moments]:
    total = defaultdict[str, Moments](Moments)
    for batch in _batches(corpus, lambda field: pa.types.is_floating(field.type)):
        found = {}
        for name, column in batch.items():
            if pa.types.is_floating(column.type):
                values = column.drop_null().to_numpy(zero_copy_only=False)
                found[name] = Moments.of(values[np.isfinite(values)])
        # Statistics replace columns with the same name.
        pairs = PairText(batch["reference"], batch["translation"], language=corpus.language)
        for name, moments in {**found, **sentence_moments(pairs, idf)}.items():
            total[name] += moments
    return dict(total)


def sentence_moments(pairs: PairText, idf: WordVectors) -> dict[str, Moments]:
    """Return the moments of the number of tokens and of the mean IDF of the sentences, by side."""
    of_word = idf.at(idf.rows(pairs.vocabulary))[:, 0]
    found = {}
    for name, side in zip(SIDES, (pairs.reference, pairs.translation), strict=True):
        sums = np.bincount(side.rows, of_word[side.ids], minlength=len(side.lengths))
        some = side.lengths > 0
        found[f"{name}_tokens"] = Moments.of(side.lengths)
        found[f"{name}_idf"] = Moments.of(sums[some] / side.lengths[some])
    return found


def top_levels(parser: Parser, texts: Iterable[str]) -> Iterator[str]:
    """Yield the top two levels of the dependency parse of each text that is not empty.

    For instance, `A dog runs fast.` gives `nsubj VERB advmod punct`. The paper uses constituency
    parses, which spaCy does not produce.
    """
    for doc in parser.parse(text for text in texts if len(text) <= parser.pipeline.max_length):
        roots = [token for token in doc if token.head.i == token.i]
        if roots:
            yield " | ".join(map(_dependents, roots))


def _dependents(root: Any) -> str:
    around = sorted([root, *root.children], key=lambda token: token.i)
    return " ".join(token.dep_ if token.i != root.i else token.pos_ or "ROOT" for token in around)


def genres(ids: pa.Array) -> pa.StringArray:
    """Return the genre at the beginning of each id of CzEng, or null for other ids.

    >>> genres(pa.array(["subtitlesM-b2-00train-f000001-s8", "captions.cs:7"])).to_pylist()
    ['subtitlesM', None]
    """
    return pc.struct_field(pc.extract_regex(ids.cast(pa.string()), _GENRE), "genre")


def _count_kinds(values: pa.StringArray) -> WordCounts:
    counted = values.value_counts()
    words, occurrences = counted.field("values"), counted.field("counts")
    return WordCounts(len(values), pa.table([words, occurrences, occurrences], schema=COUNTS))


def _open(path: str) -> pq.ParquetFile:
    with in_one_line(f"{path}: cannot be read"):
        file = pq.ParquetFile(localise(path), memory_map=True)
    if missing := set(SIDES).difference(file.schema_arrow.names):
        raise UserError(f"{path}: has no column {min(missing)}")
    return file


def _batches(corpus: Corpus, more: Callable[[pa.Field], bool]) -> Iterator[dict[str, pa.Array]]:
    for path in corpus.files:
        file = _open(path)
        columns = [*SIDES, *(field.name for field in file.schema_arrow if more(field))]
        with in_one_line(f"{path}: cannot be read"):
            for batch in file.iter_batches(_BATCH, columns=columns, use_threads=False):
                read = {name: batch[name] for name in columns}
                for side in SIDES:
                    read[side] = pc.fill_null(read[side].cast(pa.string()), "")
                yield read


def find_corpus(path: str) -> list[str]:
    """Return the Parquet files of a run's corpus or of a folder. `path` may also be one file."""
    if path.endswith(".parquet"):
        return [path]
    folder = corpus_in(path)
    names = [name for name in storage.names(folder) if name.endswith(".parquet")]
    files = [shard.path for shard in shards_in(folder)]
    files = files or [storage.join(folder, name) for name in names]
    if files:
        return files
    raise UserError(f"{path}: neither a run nor a Parquet file nor a folder of such files")


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
    results: list[dict[str, Any]] = []
    for (name, corpus), of in zip(given.items(), found, strict=True):
        statistics = {key: _values(of.get(key)) for key in dict.fromkeys([*_FIRST, *of])}
        results.append({"name": name, "pairs": corpus.pairs, "statistics": statistics})
    source = idf or "counted over the references of all these corpora"
    _print(results, source, spacy)
    write_json(json, {"corpora": results, "idf": source, "spacy": spacy})


def _language(path: str) -> str | None:
    parts = path.rstrip("/").split("/")
    for end in range(len(parts), max(len(parts) - 5, 0), -1):  # RUN/rounds/2/corpus/part.parquet
        if is_run(folder := "/".join(parts[:end])):
            return as_made(read_run(folder)).config.language
    return None


def _values(of: Moments | None) -> dict[str, float] | None:
    if of is None or not of.count:
        return None
    return {"mean": of.mean, "deviation": of.deviation, "count": of.count}


def _print(corpora: Sequence[Mapping[str, Any]], idf: str, spacy: str | None) -> None:
    rows = [["pairs", *(f"{corpus['pairs']:,}" for corpus in corpora)]]
    for name in dict.fromkeys(name for corpus in corpora for name in corpus["statistics"]):
        values = (corpus["statistics"].get(name) for corpus in corpora)
        cells = (f"{of['mean']:.3f} ± {of['deviation']:.3f}" if of else "–" for of in values)
        rows.append([name, *cells])
    title, names = "Statistics: mean ± standard deviation", [corpus["name"] for corpus in corpora]
    shown = number_table(title, "", numbers=names, rows=rows)
    parses = f"root and its dependents, by {spacy}" if spacy else "left out (–) without --spacy"
    shown.caption_justify = "left"
    shown.caption = (
        "Tokens and IDF are measured per sentence. Entropies are means of −ln p, in nats, over the "
        f"words or parses of at most about {SAMPLED:,} pairs. Genres are shares of pairs, by "
        f"CzEng's ids. IDF: {idf}. Parses: {parses}."
    )
    console(max(120, 40 + 26 * len(corpora))).print(shown)
