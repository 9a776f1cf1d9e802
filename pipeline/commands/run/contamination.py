"""`paraloom contamination`: the sentences of evaluation data sets that a corpus holds."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import typer
from pydantic import BaseModel

from paraloom.beam_jobs.io import storage
from paraloom.beam_jobs.io.remote import localise
from paraloom.beam_jobs.runners.launch import connect
from paraloom.beam_jobs.transforms.duplicates import normalised
from paraloom.beam_jobs.transforms.exclusion import (
    RULES,
    EvaluationSentences,
    Hits,
    SimilarSentences,
    embed,
)
from paraloom.models.embeddings.datasets.sentences import sentence_blocks, sentence_files
from paraloom.models.errors import UserError
from paraloom.models.sentence_models import find_model, load_sentence_model
from paraloom.pipeline.commands.options import JsonFile, beam_options, write_json
from paraloom.pipeline.console import console, number_table
from paraloom.pipeline.stages.resources.exclude import read_data_sets, sentences_of
from paraloom.pipeline.statistics import find_corpus


class Counts(BaseModel):
    """The JSON form of `paraloom contamination`."""

    rows: int
    found: int  # rows with a sentence of any data set
    data_sets: dict[str, dict[str, int]]  # `sentences`, and rows by each of RULES


@dataclass
class Contamination:
    """Rows of a corpus that hold an evaluation sentence, each by the first rule that holds.

    Attributes:
        sentences: the number of each data set's sentences.
        by_data_set: rows, int64 [data sets, rules].
        any: rows with a sentence of any data set, int64 [rules].
        examples: of each rule: where the row is, its text, data set, row there, sentence.
    """

    sentences: dict[str, int]
    by_data_set: np.ndarray
    any: np.ndarray
    rows: int = 0
    examples: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def json(self) -> Counts:
        """The counts, by data set and rule."""
        counts = dict(zip(self.sentences, self.by_data_set.tolist(), strict=True))
        sets = {
            name: {"sentences": size, **dict(zip(RULES, counts[name], strict=True))}
            for name, size in self.sentences.items()
        }
        return Counts(rows=self.rows, found=int(self.any.sum()), data_sets=sets)


def command(
    context: typer.Context,
    corpus: Annotated[
        str, typer.Argument(metavar="RUN|FILE", help="Run, or file or folder of any corpus.")
    ],
    against: Annotated[
        list[str],
        typer.Option(metavar="DATA", help="File or folder of evaluation sentences; repeatable."),
    ],
    similarity: Annotated[
        float | None,
        typer.Option(metavar="BOUND", min=-1, max=1, help="Also rows with a higher cosine."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model of sentence-transformers for --similarity."),
    ] = None,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Examples to print of each rule.")
    ] = 3,
    json: JsonFile = None,
) -> None:
    """Look for sentences that are equal, contain one another by n-grams, or are similar.

    The same rules keep sentences out of a corpus with select.exclude.
    """
    if (similarity is None) != (model is None):
        raise UserError("contamination: --similarity and --model go together")
    connect(beam_options(context), [corpus, *against])
    table, similar = read_data_sets([localise(path) for path in against]), None
    if similarity is not None and model is not None:
        opened = load_sentence_model(find_model(localise(model), "--model", "modules.json"))
        vectors = embed(opened, table["text"].combine_chunks())
        similar = SimilarSentences(opened, vectors, similarity)
    found = contamination(corpus, table, similar, examples)
    rules = RULES[: 3 if similar else 2]
    shown = number_table(None, "data set", numbers=["sentences", *rules])
    sizes = {**found.sentences, "any of them": len(table)}
    for (name, size), counts in zip(sizes.items(), [*found.by_data_set, found.any], strict=True):
        shown.add_row(name, *(f"{number:,}" for number in (size, *counts[: len(rules)])))
    out = console(160)
    out.print(shown)
    out.print(f"{found.any.sum():,} of {found.rows:,} rows hold a sentence of these data sets")
    for rule in rules:
        for where, text, data_set, row, sentence in found.examples.get(rule, []):
            out.print(f"{rule}, {where}: {text}\n    {data_set}, row {row}: {sentence}")
    write_json(json, found.json())


def contamination(
    corpus: str, table: pa.Table, similar: SimilarSentences | None = None, examples: int = 0
) -> Contamination:
    """Look for the sentences of `read_data_sets` in a corpus, with so many examples of a rule."""
    sentences, sizes = EvaluationSentences(table), sentences_of(table)
    data_sets = pc.index_in(table["data_set"], value_set=pa.array(list(sizes))).to_numpy()
    shape = len(sizes), len(RULES)
    found = Contamination(sizes, np.zeros(shape, np.int64), np.zeros(len(RULES), np.int64))
    for where, first, block in _blocks(corpus):
        columns = [pc.fill_null(column.combine_chunks(), "") for column in block.columns]
        each = [sentences.find(normalised(column)) for column in columns]
        if similar:
            found_too = map(similar.find, columns)
            each = [Hits.together(*both) for both in zip(each, found_too, strict=True)]
        hits = Hits.together(*each)
        at = np.unique(hits.rows * len(sizes) + data_sets[hits.sentences], return_index=True)[1]
        np.add.at(found.by_data_set, (data_sets[hits.sentences[at]], hits.rules[at]), 1)
        found.any += np.bincount(hits.first().rules, minlength=len(RULES))
        found.rows += len(block)
        for column, of_column in zip(columns, each, strict=True):
            for row, rule, sentence in zip(*of_column.first(), strict=True):
                shown = found.examples.setdefault(RULES[rule], [])
                if len(shown) < examples:
                    held = table.slice(sentence, 1).to_pylist()[0].values()
                    shown.append((f"{where}, row {first + row}", str(column[int(row)]), *held))
    return found


def _blocks(corpus: str) -> Iterator[tuple[str, int, pa.Table]]:
    """Texts of a run's corpus or of files: the file, the number of the first row, columns."""
    is_run = storage.exists(storage.join(corpus, "manifest.json"))
    for path in find_corpus(corpus) if is_run else [corpus]:
        for file in sentence_files(localise(path)).values():
            for first, block in sentence_blocks(file):
                yield file.name, first, block
