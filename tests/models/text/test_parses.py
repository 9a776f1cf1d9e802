"""What is said of pipelines that do not parse, and the labels of those that do."""

from pathlib import Path
from typing import Any

import pytest
import spacy

from paraloom.models.errors import UserError
from paraloom.models.text.parses import Parser
from paraloom.papers.analyses.gate_analysis import labels_of


def test_there_is_no_such_pipeline(tmp_path: Path) -> None:
    for name in ("no_such_pipeline", str(tmp_path)):
        with pytest.raises(UserError, match=f"spaCy cannot load {name}: ") as caught:
            Parser(name)
        assert "\n" not in str(caught.value)


def test_a_pipeline_that_does_not_parse(tmp_path: Path) -> None:
    for name, parts in (("blank", []), ("split", ["sentencizer"])):
        pipeline = spacy.blank("en")
        for part in parts:
            pipeline.add_pipe(part)
        pipeline.to_disk(tmp_path / name)
        with pytest.raises(UserError, match=r"does not parse \(it is .*\): name one with"):
            Parser(str(tmp_path / name))


def test_labels_are_fine_tags(parser: str, tmp_path: Path) -> None:
    pipeline = spacy.load(parser)
    ruler: Any = pipeline.get_pipe("attribute_ruler")
    ruler.add(patterns=[[{"LOWER": "runs"}]], attrs={"TAG": "VBZ"})
    pipeline.to_disk(tmp_path / "fine")
    (found,) = labels_of(Parser(str(tmp_path / "fine")), [["a", "dog", "runs", "fast", "."]])
    assert found[2] == ("VBZ", "ROOT") and found[1] == ("–", "nsubj")
