"""What is said of pipelines that do not parse, and the labels of those that do."""

from pathlib import Path
from typing import Any

import pytest
import spacy

from paraloom.models.errors import UserError
from paraloom.models.text.parses import Parser
from paraloom.papers.analyses.gate_analysis import labels_of


def test_what_is_no_pipeline_or_does_not_parse_is_one_line(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    for name, message in (
        ("no_such_pipeline", "spaCy cannot load no_such_pipeline: "),
        (str(tmp_path), "spaCy cannot load "),
        (str(tmp_path / "blank"), r"does not parse \(it is .*\): name one with"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            Parser(name)
        assert "\n" not in str(caught.value)


def test_labels_are_fine_tags(parser: str, tmp_path: Path) -> None:
    pipeline = spacy.load(parser)
    ruler: Any = pipeline.get_pipe("attribute_ruler")
    ruler.add(patterns=[[{"LOWER": "runs"}]], attrs={"TAG": "VBZ"})
    pipeline.to_disk(tmp_path / "fine")
    (found,) = labels_of(Parser(str(tmp_path / "fine")), [["a", "dog", "runs", "fast", "."]])
    assert found[2] == ("VBZ", "ROOT") and found[1] == ("–", "nsubj")
