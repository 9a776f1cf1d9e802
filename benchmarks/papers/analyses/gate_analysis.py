"""The gates of a GRAN by part of speech and dependency label (W&G 2017, 5.2).

A gate scales a word vector before averaging. Its L1 norm measures the weight of the word.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
import typer
from numpy.typing import NDArray
from rich.columns import Columns

from paraloom.models.embeddings.applications.embed import line_batches
from paraloom.models.embeddings.encoders.ragged_batches import Input
from paraloom.models.embeddings.encoders.recurrent import Recurrent
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.vocabulary import ids_by_kind, tag_edges
from paraloom.models.errors import UserError
from paraloom.models.languages import language_name
from paraloom.models.text.parses import Parser
from paraloom.models.text.tokens import moses_tokens
from paraloom.papers.analyses.moments import Moments
from paraloom.papers.datasets.contiguous_text import edges
from paraloom.papers.encoders.gran import GRAN
from paraloom.pipeline.commands.console import binary, console, number_table
from paraloom.pipeline.commands.options import JsonFile, Model, write_json
from paraloom.pipeline.run.notices import notify


class Norms(NamedTuple):
    """L1 norms of gates by label."""

    parts_of_speech: dict[str, Moments]
    dependencies: dict[str, Moments]
    conjunctions: dict[str, Moments]  # by both labels, such as `NN nsubj`


def gate_norms(
    model: SentenceEncoder,
    parser: Parser,
    batches: Iterable[pa.StringArray],
    *,
    max_tokens: int | None = None,
) -> Norms:
    """Return the L1 norms of gates by label, in descending order of the mean.

    In a bidirectional model, both gates of a word are averaged. Sentences of more than `max_tokens`
    tokens are skipped, because their parses are less reliable (the paper uses 15, footnote 8).
    """
    input, networks = _networks(model)
    by_label: tuple[dict[str, list[Moments]], ...] = tuple(defaultdict(list) for _ in range(3))
    for batch in batches:
        text, tokens = batch, moses_tokens(batch, model.language, lower=False)
        if max_tokens is not None:
            short = pc.less_equal(pc.list_value_length(tokens), max_tokens)
            text, tokens = text.filter(short), tokens.filter(short)
        norms = _norms(model, input, networks, text)
        labels = [label for sentence in labels_of(parser, tokens.to_pylist()) for label in sentence]
        kinds = zip(*((part, label, f"{part} {label}") for part, label in labels), strict=True)
        for found, of_tokens in zip(by_label, map(np.array, kinds), strict=False):
            for label in np.unique(of_tokens):
                found[str(label)].append(Moments.of(norms[of_tokens == label]))
    merged = ({label: sum(m, Moments()) for label, m in found.items()} for found in by_label)
    return Norms(*(dict(sorted(of.items(), key=lambda item: -item[1].mean)) for of in merged))


def labels_of(
    parser: Parser, sentences: Iterable[Sequence[str]]
) -> Iterator[list[tuple[str, str]]]:
    """Yield (part of speech, dependency label) of each token, as a list for each sentence. A
    missing part of speech is `–`."""
    from spacy.tokens import Doc

    vocabulary = parser.pipeline.vocab
    docs = (Doc(vocabulary, words=list(tokens)) for tokens in sentences)
    words = tagged = 0
    for doc in parser.pipeline.pipe(docs, batch_size=256):
        found = [(token.tag_ or token.pos_ or "–", token.dep_) for token in doc]
        words += len(found)
        tagged += sum(part != "–" for part, _ in found)
        yield found
    if words and not tagged:
        raise UserError(
            f"the spaCy pipeline {parser.name} gives no parts of speech: name one with a tagger "
            "or a morphologizer"
        )


def _networks(model: SentenceEncoder) -> tuple[Input, list[GRAN]]:
    encoder = model.encoder
    if isinstance(encoder, Recurrent):
        networks = [network for network in encoder.directions if isinstance(network, GRAN)]
        if networks and networks[0].averages_gated:
            return encoder.input, networks
    raise UserError(
        f"a {model.options.model} has no gate that scales each word: take a model with gran, "
        "gran-2, gran-5 or bigran"
    )


@torch.inference_mode()
def _norms(
    model: SentenceEncoder, input: Input, networks: list[GRAN], text: pa.StringArray
) -> NDArray[np.float64]:
    ids = ids_by_kind(model.vocabularies, text)["words"]
    batch = input(ids)
    gated = (network.averaged_gate(batch) for network in networks)
    sums = [gates.sum(dim=1).double().cpu().numpy()[trie.paths] for gates, trie in gated]
    start, end = tag_edges(model.vocabularies["words"].tags)
    return np.asarray(np.mean(sums, axis=0)[~edges(ids.offsets, head=start, tail=end)])


def command(
    model: Model,
    spacy: Annotated[
        str,
        typer.Option(
            metavar="PIPELINE", help="Name or folder of a spaCy pipeline with tagger and parser."
        ),
    ],
    least: Annotated[int, typer.Option(metavar="N", help="Skip labels with fewer words.")] = 10,
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Skip sentences with more tokens.", min=1),
    ] = None,
    json: JsonFile = None,
) -> None:
    """Print the mean L1 norm of gates by part of speech, by dependency label, and by both labels.

    Sentences are read from standard input, one per line.
    """
    lines = binary(sys.stdin, "input")
    encoder, parser = load_encoder(model), Parser(spacy)
    if parser.language not in (encoder.language, "xx"):
        parses, texts = map(language_name, (parser.language, encoder.language))
        notify([f"--spacy: this pipeline parses {parses}, the texts are {texts}"])
    batches = (pa.array(batch, pa.string()) for batch in line_batches(lines))
    norms_by_kind = gate_norms(encoder, parser, batches, max_tokens=max_tokens)._asdict()
    tables, results = [], {}
    for kind, norms in norms_by_kind.items():
        shown = ((label, of) for label, of in norms.items() if of.count >= least)
        rows = [(label, f"{of.count:,}", f"{of.mean:.2f}") for label, of in shown]
        results[kind] = {
            label: {"words": of.count, "mean": of.mean, "deviation": of.deviation}
            for label, of in norms.items()
        }
        heads = ("words", "mean norm")
        tables.append(number_table(None, kind.replace("_", " "), numbers=heads, rows=rows))
    console().print(Columns(tables))
    write_json(json, results)
