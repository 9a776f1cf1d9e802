"""`paraloom contamination`: finds evaluation sentences in a corpus."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from pydantic import BaseModel
from scipy.sparse import csr_array

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.options import connect
from paraloom.beam_jobs.storage.remote import localise
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.exclusion import RULES, EvaluationSentences, embed, first_found
from paraloom.models.embeddings.datasets.sentences import Sentences, sentence_blocks, sentence_files
from paraloom.models.errors import UserError
from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model
from paraloom.models.sentence_models import find_model
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, argument, beam_options, option, write_json
from paraloom.pipeline.release.release import ABOUT
from paraloom.pipeline.run.folder import corpus_in, shards_in
from paraloom.pipeline.stages.selection.exclude import read_data_sets, sentences_of

_TEXTS = ("source", "reference", "translation")  # the columns of pairs that are searched


class Counts(BaseModel):
    """The JSON form of `paraloom contamination`."""

    rows: int
    found: int  # number of rows with an evaluation sentence
    # For each data set: the number of `sentences`, and the number of rows by rule. A row counts for
    # the first rule that found it.
    data_sets: dict[str, dict[str, int]]


def command(
    context: typer.Context,
    corpus: Annotated[str, argument("RUN|FILE", "A run, or a file or folder of any corpus.")],
    against: Annotated[
        list[str], option("DATA", "Evaluation data, as in select.exclude. Repeatable.")
    ],
    similarity: Annotated[
        float | None,
        option(
            "BOUND",
            "Also find rows whose cosine with an evaluation sentence is above BOUND.",
            min=-1,
            max=1,
        ),
    ] = None,
    model: Annotated[
        str | None, option("NAME", "Sentence-transformers model for --similarity.")
    ] = None,
    examples: Annotated[int, option("N", "Number of examples to print for each rule.", min=0)] = 3,
    json: JsonFile = None,
) -> None:
    """Find texts that match an evaluation sentence.

    A text and a sentence match if they are equal, or if the longer of the two contains most word
    5-grams of the shorter. The configuration key select.exclude removes rows by the same rules.
    """
    if (similarity is None) != (model is None):
        raise UserError("contamination: give both --similarity and --model, or neither")
    connect(beam_options(context), [corpus, *against])
    table, similar = read_data_sets([localise(path) for path in against]), None
    if similarity is not None and model is not None:
        opened = open_sentence_model(find_model(localise(model), "--model", "modules.json"))
        similar = opened, embed(opened, table["text"].combine_chunks()), similarity
    counts, rows, shown = contamination(corpus, EvaluationSentences(table, similar), examples)
    rules = RULES[: 3 if similar else 2]
    sizes = {**sentences_of(table), "any of them": len(table)}
    found = {
        name: {"sentences": size, **dict(zip(RULES, of, strict=True))}
        for (name, size), of in zip(sizes.items(), counts.tolist(), strict=True)
    }
    numbers = ["sentences", *rules]
    cells = ([name, *(f"{of[key]:,}" for key in numbers)] for name, of in found.items())
    out = console(160)
    out.print(number_table(None, "data set", numbers=numbers, rows=cells))
    total = int(counts[-1].sum())
    del found["any of them"]
    out.print(f"{total:,} of {rows:,} rows contain a sentence of these data sets")
    for rule in rules:
        for where, text, of in shown[rule]:
            held = f"{of['data_set']}, row {of['row']}: {of['text']}"
            out.print(f"{rule}, {where}: {text}\n    {held}")
    write_json(json, Counts(rows=rows, found=total, data_sets=found))


def contamination(
    corpus: str, sentences: EvaluationSentences, examples: int = 0
) -> tuple[np.ndarray, int, dict[str, list[Any]]]:
    """Find evaluation sentences in a corpus.

    Returns:
        - the counts, int64 [data sets + 1, rules]: the number of rows in which a rule, but
          no earlier rule, found a sentence of a data set. `counts[-1]` counts the rows with a
          sentence of any data set.
        - the number of rows of the corpus.
        - for each rule, at most `examples` tuples of place, text and evaluation sentence.
    """
    names = pa.array([*sentences_of(sentences.table)])
    number = pc.index_in(sentences.table["data_set"], value_set=names).to_numpy()
    of_set = csr_array((np.ones(len(number), np.int32), (np.arange(len(number)), number)))
    counts, rows = np.zeros((len(names) + 1, len(RULES)), np.int64), 0
    shown: dict[str, list[Any]] = {rule: [] for rule in RULES}
    for where, block in _blocks(corpus):
        sides = [sentences.find(texts, normalised(texts)) for _, texts in block.columns]
        seen = np.zeros((len(block.rows), len(counts)), bool)
        for rule, found in enumerate(zip(*sides, strict=True)):
            held = np.zeros_like(seen)
            for (at, _), of in zip(block.columns, found, strict=True):
                np.logical_or.at(held[:, :-1], at, (of @ of_set).toarray() > 0)
            held[:, -1] = held.any(axis=1)
            counts[:, rule] += (held & ~seen).sum(axis=0)
            seen |= held
        rows += len(block.rows)
        for (at, column), side in zip(block.columns, sides, strict=True):
            for name, which, of in first_found([side]):
                left = max(examples - len(shown[name]), 0)
                texts, held = column.take(pa.array(which[:left])), sentences.table.take(of[:left])
                places = [f"{where}, row {row}" for row in block.rows[at[which[:left]]]]
                shown[name] += zip(places, texts.to_pylist(), held.to_pylist(), strict=True)
    return counts, rows, shown


def _blocks(corpus: str) -> Iterator[tuple[str, Sentences]]:
    """Yield blocks of texts, each with the name of its file, without rejected rows."""
    paths: list[str] = []
    if not Path(corpus).is_file():
        paths = [shard.path for shard in shards_in(corpus_in(corpus))]
        if storage.exists(storage.join(corpus, ABOUT)):
            paths = [storage.join(corpus, "data")]
    for path in paths or [corpus]:
        for file in sentence_files(localise(path)).values():
            for block in sentence_blocks(file, _TEXTS if paths else ()):
                yield file.name, block
