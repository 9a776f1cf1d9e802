"""Gates by part of speech and label, read word by word; pairs that one of two models knows."""

import io
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import spacy
import torch

from paraloom.models.embeddings.comparison import ComparedModel, Scores, Vectors
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.text.parses import Parser
from paraloom.models.text.tokens import moses_tokens
from paraloom.papers.analyses.compare_models import disagreements
from paraloom.papers.analyses.gate_analysis import gate_norms, labels_of
from paraloom.pipeline import cli
from tests.labelled import labelled
from tests.models.parsers import TREES
from tests.run_helpers import Capsys, Patch, refusal, refuses
from tests.small_encoder import small_encoder

TEXTS = pa.array(["a dog runs fast.", "The cat sees a bird .", "", "run!", "a dog, a cat"])


def model_of(name: str = "gran", **options: Any) -> SentenceEncoder:
    words = sorted({word for text, *_ in TREES for word in text.split()})
    return small_encoder(words, name, **options)


def plainly(model: SentenceEncoder, parser: Parser) -> list[dict[str, list[float]]]:
    """Every word's gate by the equations, the mean of those of both directions."""
    encoder: Any = model.encoder
    vocabulary, weight = model.vocabularies["words"], encoder.input.table.weight
    found: list[dict[str, list[float]]] = [defaultdict(list) for _ in range(3)]
    numbers = dict(zip(vocabulary.words, range(len(vocabulary)), strict=True))
    texts = moses_tokens(TEXTS, lower=False).to_pylist()
    for tokens, known in zip(texts, labels_of(parser, texts), strict=True):
        ids = [numbers.get(token.lower(), 0) for token in tokens]
        labels: list[tuple[str, str] | None] = [*known]
        if vocabulary.tags:
            ids, labels = [1, *ids, 2], [None, *known, None]
        norms = np.zeros(len(ids))
        for network in encoder.directions:
            h = c = torch.zeros(1, 4)
            for place, word in list(enumerate(ids))[:: -1 if network.lstm.reversed else 1]:
                h, c = torch.lstm_cell(weight[[word]], (h, c), *network.lstm.weights.all_weights[0])
                gate = network.from_words(weight[word]) + network.from_states(h[0])
                norms[place] += torch.sigmoid(gate[:4]).sum().item() / len(encoder.directions)
        for norm, label in zip(norms, labels, strict=True):
            if label:
                for of, key in zip(found, (*label, f"{label[0]} {label[1]}"), strict=True):
                    of[key].append(norm)
    return found


@pytest.mark.parametrize(("name", "tags"), [("gran", False), ("gran-5", True), ("bigran", False)])
def test_norms_by_label(parser: str, name: str, tags: bool) -> None:
    model, opened = model_of(name, tags=tags), Parser(parser)
    batches = [TEXTS[:2], TEXTS[2:]]
    found = gate_norms(model, opened, batches)
    for ours, theirs in zip(found, plainly(model, opened), strict=True):
        assert set(ours) == set(theirs) and len(ours) > 1
        for label, norms in theirs.items():
            assert ours[label].count == len(norms)
            assert ours[label].mean == pytest.approx(np.mean(norms), abs=1e-5)
        means = [of.mean for of in ours.values()]
        assert means == sorted(means, reverse=True)
    assert "nsubj" in found.dependencies and "VERB ROOT" in found.conjunctions


def test_the_command(tmp_path: Path, parser: str, capsys: Capsys, monkeypatch: Patch) -> None:
    model_of().save(tmp_path / "model")
    text = "\n".join(TEXTS.to_pylist()).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    files = ["--model", str(tmp_path / "model"), "--json", str(tmp_path / "g.json")]
    assert cli.main(["papers", "gate-analysis", *files, "--spacy", parser, "--least", "2"]) == 0
    said = capsys.readouterr().out
    assert "parts of speech" in said and "VERB" in said and "advmod" not in said
    found = json.loads((tmp_path / "g.json").read_text())
    assert found["dependencies"]["advmod"]["words"] == 1


def test_what_is_no_pipeline_or_does_not_parse_is_one_line(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    for name, message in (
        ("no_such_pipeline", "spaCy cannot load no_such_pipeline: "),
        (str(tmp_path / "blank"), r"does not parse \(components: .*\); choose a"),
    ):
        with refuses(message):
            Parser(name)


def test_labels_are_fine_tags(parser: str, tmp_path: Path) -> None:
    pipeline = spacy.load(parser)
    ruler: Any = pipeline.get_pipe("attribute_ruler")
    ruler.add(patterns=[[{"LOWER": "runs"}]], attrs={"TAG": "VBZ"})
    pipeline.to_disk(tmp_path / "fine")
    (found,) = labels_of(Parser(str(tmp_path / "fine")), [["a", "dog", "runs", "fast", "."]])
    assert found[2] == ("VBZ", "ROOT") and found[1] == ("–", "nsubj")


def model(
    name: str,
    said: Mapping[str, Sequence[float] | Scores],
    scale: tuple[float, float] | None = None,
) -> ComparedModel:
    """Scores by the texts' own names."""

    def embed(texts: pa.StringArray) -> Vectors:
        return np.array(texts.to_pylist(), object)[:, None]

    def compare(first: Vectors, second: Vectors) -> Scores:
        names = (text.split() for text in first[:, 0])
        return np.array([said[set][int(number)] for set, number in names])

    return ComparedModel(name, embed, compare, scale)


SETS = [
    labelled([f"{name} {i}" for i in range(4)], [f"{name} {i}'" for i in range(4)], of, name=name)
    for name, of in (("x", [0, 5, 2.5, 1]), ("y", [3.5, 0, 5, 2.5]))
]


def test_scores_are_stretched_to_the_scale_set_by_set() -> None:
    # Of x: 0, 5, 2.5, 5 on the scale; of y: 0, 5, 2.5, 2.5.
    first = model("A", {"x": [-1, 1, 0, 1], "y": [0.2, 0.4, 0.3, 0.3]})
    # Predicted labels stay as they are.
    second = model("B", {"x": [1, 4, 2.5, 1], "y": [4, 4, 4, 2.5]}, scale=(0, 5))
    for_b, for_a = disagreements((first, second), SETS, count=3)
    assert [(d.first, d.label, d.scores) for d in for_b] == [
        ("x 3", 1.0, (5.0, 1.0)),
        ("y 0", 3.5, (0.0, 4.0)),
        ("y 2", 5.0, (pytest.approx(2.5), 4.0)),
    ]
    assert for_b[0].data == "STS 2014 x" and for_b[0].second == "x 3'"
    assert for_b[0].scores == (for_b[0].label + 4.0, for_b[0].label)
    assert [d.first for d in for_a] == ["x 0", "x 1"] or [d.first for d in for_a] == ["x 1", "x 0"]


def test_the_command_compares_models(tmp_path: Path, capsys: Capsys) -> None:
    for name in ("word-avg", "gran"):
        model_of(name).save(tmp_path / name)
    sts = tmp_path / "sts" / "2014"
    sts.mkdir(parents=True)
    rows = ["5\ta dog runs\ta dog runs fast", "1\tthe cat\trun", "3\ta cat\tthe bird sees"]
    (sts / "made.tsv").write_text("\n".join(rows) + "\n")
    file, on = tmp_path / "errors.json", ["--sts", str(tmp_path / "sts")]
    models = ["--model", str(tmp_path / "word-avg"), "--model", str(tmp_path / "gran")]
    command = ["papers", "compare-models"]
    assert cli.main([*command, *models, *on, "--json", str(file)]) == 0
    shown = "".join(capsys.readouterr().out.split())  # a long path breaks the line
    assert "isclosertothelabelthan" in shown
    found = json.loads(file.read_text())
    assert set(found) == {str(tmp_path / name) for name in ("word-avg", "gran")}
    assert "give --model twice" in refusal(capsys, *command, *models[:2], *on)
    assert "nothing to evaluate on" in refusal(capsys, *command, *models)
