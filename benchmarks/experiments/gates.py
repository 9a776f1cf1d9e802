"""Tables 9 to 11 of W&G (Wieting & Gimpel 2017): the gates of a GRAN by tag and dependency label.

The GRAN is the one of Table 8, with seed 1. The sentences are those of three books with at most 15
tokens (in the paper, 10,000 of Wikipedia). A label counts if it has at least 20 words.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from rich.console import Console

from benchmarks.experiments import supervised
from benchmarks.experiments.cells import Inputs
from benchmarks.experiments.context import BOOKS
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.files import atomic_file
from paraloom.models.text.parses import Parser
from paraloom.papers.analyses.gate_analysis import gate_norms
from paraloom.papers.analyses.moments import Moments
from paraloom.papers.datasets.contiguous_text import read_text

_LONGEST = 15  # tokens (footnote 8)
_LEAST = 20  # words of a label
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
"""With the highest norms, the highest first; with the lowest, the lowest first."""
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
    written = [f"### W&G Tables 9 to 11: L1 norms of the GRAN's gates ({pipeline})", *lines, ""]
    Console(width=110, soft_wrap=True).print(*written, sep="\n", markup=False)
    with atomic_file(inputs.folder / "wg9.md") as temporary:
        temporary.write_text("\n".join(written))


def _extremes(kind: str, paper: Sequence[str], found: Mapping[str, Moments]) -> Iterable[str]:
    """Table 9: the ten labels with the highest and the lowest mean norms."""
    labels = [label for label, moments in found.items() if moments.count >= _LEAST]
    highest, lowest = (of.split() for of in paper)
    yield from ("", f"| {kind}: highest | paper | lowest | paper |", "| --- | --- | --- | --- |")
    rows = zip(labels[:10], highest, labels[::-1][:10], lowest, strict=False)
    for high, papers_high, low, papers_low in rows:
        shown = (f"{label} {found[label].mean:.1f}" for label in (high, low))
        ours_high, ours_low = shown
        yield f"| {ours_high} | {papers_high} | {ours_low} | {papers_low} |"


def _weights(tag: str, paper: Mapping[str, float], found: Mapping[str, Moments]) -> Iterable[str]:
    """Tables 10 and 11: the mean norm of a tag's words by dependency label."""
    yield from ("", f"| {tag} | mean norm | words | paper |", "| --- | --- | --- | --- |")
    for label, figure in paper.items():
        moments = found.get(f"{tag} {_SPACY_LABELS.get(label, label)}")
        if moments is not None and moments.count >= _LEAST:
            yield f"| {label} | {moments.mean:.1f} | {moments.count:,} | {figure} |"


def _positions(found: Mapping[str, Moments]) -> Iterable[str]:
    """5.2: nouns are heavier as objects than as subjects."""
    yield from ("", "| nouns (the paper: objects > subjects) | mean norm | words |")
    yield "| --- | --- | --- |"
    for position, labels in _POSITIONS.items():
        of = [found[name] for name in (f"{t} {x}" for t in _NOUNS for x in labels) if name in found]
        if of:
            merged = sum(of, Moments())
            yield f"| {position} | {merged.mean:.1f} | {merged.count:,} |"
