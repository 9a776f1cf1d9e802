"""Tables 9 to 11 of W&G (Wieting & Gimpel 2017): the gates of a GRAN by tag and dependency label.

The GRAN is the one of Table 8, with seed 1. The sentences come from three books and have at most 15
tokens (in the paper, 10,000 sentences of Wikipedia). A label counts if it has at least 20 words.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from benchmarks.experiments import supervised
from benchmarks.experiments.cells import Inputs
from benchmarks.experiments.context import BOOKS
from benchmarks.experiments.report import markdown, write_lines
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.text.parses import Parser
from paraloom.papers.analyses.gate_analysis import gate_norms
from paraloom.papers.analyses.moments import Moments
from paraloom.papers.datasets.contiguous_text import read_text

_LONGEST = 15  # tokens (footnote 8)
_LEAST = 20  # words that a label must have
_TABLE_9 = {
    "tags": (
        "NNP NNPS CD NNS VBG NN JJ UH VBN JJS",
        "TO WDT POS DT WP IN CC PRP EX WRB",
    ),
    "dependency labels": (
        "number nn num acomp appos pobj vmod dobj amod conj",
        "possessive cop det auxpass prep cc mark aux expl neg",
    ),
}
"""Labels with the highest norms (highest first), then labels with the lowest norms (lowest
first)."""
_TABLES_10_AND_11 = {
    "JJ": {"xcomp": 170.6, "acomp": 167.1, "root": 157.4, "amod": 143.1, "advmod": 121.6},
    "VBG": {
        **{"pcomp": 190.0, "amod": 178.3, "xcomp": 176.8, "vmod": 170.6},
        **{"root": 161.8, "auxpass": 125.4, "prep": 121.2},
    },
}
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_POSITIONS = {"objects": ("dobj", "pobj"), "subjects": ("nsubj", "nsubjpass")}
_SPACY_LABELS = {"vmod": "acl", "root": "ROOT"}  # the Stanford parser's labels and spaCy's


def print_gates(inputs: Inputs, pipeline: str) -> None:
    """Print and write the tables; `pipeline` is the spaCy pipeline that tags and parses.

    Raises:
        UserError: there is no such pipeline, or the books are missing.
    """
    parser = Parser(pipeline)
    model = load_encoder(supervised.universal("GRAN", inputs))
    blocks = read_text([inputs.books / name for name in BOOKS])
    batches = (block.sentences for block in blocks)
    norms = gate_norms(model, parser, batches, max_tokens=_LONGEST)
    kinds = zip(_TABLE_9.items(), (norms.parts_of_speech, norms.dependencies), strict=True)
    lines = chain(
        *(_extremes(kind, figures, found) for (kind, figures), found in kinds),
        *(_weights(tag, figures, norms.conjunctions) for tag, figures in _TABLES_10_AND_11.items()),
        _positions(norms.conjunctions),
    )
    written = [f"### W&G Tables 9 to 11: L1 norms of the GRAN's gates ({pipeline})", *lines]
    write_lines(inputs.folder / "wg9.md", written)


def _extremes(kind: str, paper: Sequence[str], found: Mapping[str, Moments]) -> Iterable[str]:
    """Table 9: the ten labels with the highest and the lowest mean norms."""
    labels = [label for label, moments in found.items() if moments.count >= _LEAST]
    highest, lowest = (of.split() for of in paper)
    shown = [f"{label} {found[label].mean:.1f}" for label in labels]
    rows = zip(shown[:10], highest, shown[::-1][:10], lowest, strict=False)
    return ["", *markdown([f"{kind}: highest", "paper", "lowest", "paper"], rows)]


def _weights(tag: str, paper: Mapping[str, float], found: Mapping[str, Moments]) -> Iterable[str]:
    """Tables 10 and 11: the mean norm of a tag's words by dependency label."""
    names = {label: f"{tag} {_SPACY_LABELS.get(label, label)}" for label in paper}
    rows = [
        (label, f"{found[name].mean:.1f}", f"{found[name].count:,}", f"{paper[label]}")
        for label, name in names.items()
        if name in found and found[name].count >= _LEAST
    ]
    return ["", *markdown([tag, "mean norm", "words", "paper"], rows)]


def _positions(found: Mapping[str, Moments]) -> Iterable[str]:
    """5.2: nouns are heavier as objects than as subjects."""
    rows = []
    for position, labels in _POSITIONS.items():
        names = (f"{noun} {label}" for noun in _NOUNS for label in labels)
        of = sum((found[name] for name in names if name in found), Moments())
        if of.count:
            rows.append((position, f"{of.mean:.1f}", f"{of.count:,}"))
    heads = ["nouns (the paper: objects > subjects)", "mean norm", "words"]
    return ["", *markdown(heads, rows)]
