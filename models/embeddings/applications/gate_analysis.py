"""What a GRAN's gate attends to: its size by part of speech and dependency label (W&G 2017, 5.2).

The gate scales what a word adds to the mean: its L1 norm, the sum over its numbers between 0 and
1, is the weight that the word has in the sentence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch

from models.embeddings.encoders.gran import GRAN
from models.embeddings.encoders.recurrent import Recurrent
from models.embeddings.model import SentenceEncoder
from models.embeddings.vocabulary import ids_by_kind
from models.errors import UserError
from models.text.parses import Parser
from models.text.statistics import Moments, merge_moments
from models.text.tokens import moses_tokens


class Norms(NamedTuple):
    """L1 norms of gates, by label; `NOUN nsubj` is a conjunction of both."""

    parts_of_speech: dict[str, Moments]
    dependencies: dict[str, Moments]
    conjunctions: dict[str, Moments]


def gate_norms(model: SentenceEncoder, parser: Parser, batches: Iterable[pa.StringArray]) -> Norms:
    """Mean and deviation of the gates' L1 norms over the words with each label, largest mean first.

    Of two directions, a word's norm is the mean of both. spaCy gets the words as the encoder cuts
    them, with their capitals.

    Raises:
        UserError: the encoder has no such gate, or the pipeline gives no parts of speech.
    """
    networks = _networks(model)
    parts: tuple[dict[str, list[Moments]], ...] = tuple(defaultdict(list) for _ in range(3))
    for text in batches:
        norms = _norms(model, networks, text)
        tokens = moses_tokens(text, lower=False).to_pylist()
        labels = [label for sentence in parser.labels(tokens) for label in sentence]
        kinds = zip(*((part, label, f"{part} {label}") for part, label in labels), strict=True)
        for found, of in zip(parts, map(np.array, kinds), strict=False):
            for label in np.unique(of):
                found[str(label)].append(Moments.of(norms[of == label]))
    merged = ({label: merge_moments(of) for label, of in found.items()} for found in parts)
    return Norms(*(dict(sorted(of.items(), key=lambda item: -item[1].mean)) for of in merged))


def _networks(model: SentenceEncoder) -> list[GRAN]:
    encoder = model.encoder
    if isinstance(encoder, Recurrent):
        networks = [network for network in encoder.directions if isinstance(network, GRAN)]
        if networks and networks[0].variant not in (3, 4):
            return networks
    raise UserError(
        f"a {model.options.model} has no gate that scales each word: take a model with gran, "
        "gran-2, gran-5 or bigran"
    )


@torch.inference_mode()
def _norms(model: SentenceEncoder, networks: list[GRAN], text: pa.StringArray) -> np.ndarray:
    """One per token without tags, float64 [tokens]."""
    ids = ids_by_kind(model.vocabularies, text)["words"]
    tokens = model.encoder.input(ids)  # type: ignore[operator]
    each = []
    for network in networks:
        gates, tree = network.openness(tokens)
        each.append(gates.sum(dim=1).double().cpu().numpy()[tree.paths])
    norms = np.mean(each, axis=0)
    if model.vocabularies["words"].tags:
        inside = np.ones(len(norms), bool)
        inside[ids.offsets[:-1]] = inside[ids.offsets[1:] - 1] = False
        norms = norms[inside]
    return np.asarray(norms)
