"""Tables 9 to 11 of W&G (Wieting & Gimpel 2017): the gates of a GRAN by tag and dependency label.

The GRAN is the universal encoder of Table 8. The sentences come from three books and have at most
15 tokens. The paper reads 10,000 sentences of Wikipedia. Labels with fewer than 20 words are left
out.
"""

from collections.abc import Mapping

from benchmarks.experiments import supervised
from benchmarks.experiments.cells import Inputs
from benchmarks.experiments.context import BOOKS
from benchmarks.experiments.report import markdown, write_lines
from benchmarks.experiments.tables import Figures, read_figures
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.text.parses import Parser
from paraloom.papers.analyses.gate_analysis import gate_norms
from paraloom.papers.analyses.moments import Moments
from paraloom.papers.datasets.contiguous_text import read_text

_LONGEST = 15  # tokens (footnote 8)
_LEAST = 20  # words per label
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
"""The paper's labels with the highest norms, in descending order, and with the lowest norms, in
ascending order."""
_TABLES_10_AND_11 = ("JJ", "VBG")
_NOUNS = ("NN", "NNS", "NNP", "NNPS")
_POSITIONS = {"objects": ("dobj", "pobj"), "subjects": ("nsubj", "nsubjpass")}
_SPACY_LABELS = {"vmod": "acl", "root": "ROOT"}  # by label of the Stanford parser


def print_gates(inputs: Inputs) -> None:
    """Print and write the tables. `inputs.spacy` tags and parses the sentences.

    Raises:
        UserError: the pipeline or the books are missing.
    """
    parser = Parser(inputs.spacy)
    model = load_encoder(supervised.universal("GRAN", inputs))
    batches = (block.sentences for block in read_text([inputs.books / name for name in BOOKS]))
    norms = gate_norms(model, parser, batches, max_tokens=_LONGEST)
    lines = [f"### W&G Tables 9 to 11: L1 norms of the GRAN's gates ({inputs.spacy})"]
    found = (norms.parts_of_speech, norms.dependencies)
    for (kind, paper), of_kind in zip(_TABLE_9.items(), found, strict=True):
        lines += _extremes(kind, paper, of_kind)
    for tag in _TABLES_10_AND_11:
        lines += _norms(tag, read_figures(f"gates-{tag}"), norms.conjunctions)
    write_lines(inputs.folder / "wg9.md", [*lines, *_positions(norms.conjunctions)])


def _extremes(kind: str, paper: tuple[str, str], found: Mapping[str, Moments]) -> list[str]:
    """Table 9: the ten labels with the highest and with the lowest mean norms."""
    highest, lowest = (labels.split() for labels in paper)
    shown = [f"{label} {of.mean:.1f}" for label, of in found.items() if of.count >= _LEAST]
    rows = zip(shown[:10], highest, shown[::-1][:10], lowest, strict=False)
    return ["", *markdown([f"{kind}: highest", "paper", "lowest", "paper"], rows)]


def _norms(tag: str, paper: Figures, found: Mapping[str, Moments]) -> list[str]:
    """Tables 10 and 11: the mean norm of a tag's words by dependency label."""
    rows = [
        (label, f"{of.mean:.1f}", f"{of.count:,}", f"{printed['norm']}")
        for label, printed in paper.items()
        for of in [found.get(f"{tag} {_SPACY_LABELS.get(label, label)}", Moments())]
        if of.count >= _LEAST
    ]
    return ["", *markdown([tag, "mean norm", "words", "paper"], rows)]


def _positions(found: Mapping[str, Moments]) -> list[str]:
    """Section 5.2: the mean norm of nouns as objects and as subjects."""
    rows = []
    for position, labels in _POSITIONS.items():
        names = (f"{noun} {label}" for noun in _NOUNS for label in labels)
        of = sum((found[name] for name in names if name in found), Moments())
        if of.count:
            rows.append((position, f"{of.mean:.1f}", f"{of.count:,}"))
    return ["", *markdown(["nouns (the paper: objects > subjects)", "mean norm", "words"], rows)]
