"""spaCy pipelines made on the spot: there is none to download in a test."""

from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc
from spacy.training import Example

TREES = [
    ("a dog runs fast .", [1, 2, 2, 2, 2], ["det", "nsubj", "ROOT", "advmod", "punct"]),
    ("the cat sees a bird .", [1, 2, 2, 4, 2, 2], ["det", "nsubj", "ROOT", "det", "obj", "punct"]),
    ("run !", [0, 0], ["ROOT", "punct"]),
]
VERBS = ["runs", "sees", "run"]


def train_parser(folder: Path) -> str:
    """A pipeline that knows the trees above by heart."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("parser", config={"min_action_freq": 1})
    examples = [
        Example(
            Doc(pipeline.vocab, words=text.split()),
            Doc(pipeline.vocab, words=text.split(), heads=heads, deps=relations),
        )
        for text, heads, relations in TREES
    ]
    spacy.util.fix_random_seed(1)  # type: ignore[attr-defined]  # it is documented there
    pipeline.initialize(lambda: examples)
    for _ in range(40):
        pipeline.update(examples)
    ruler: Any = pipeline.add_pipe("attribute_ruler")
    ruler.add(patterns=[[{"LOWER": verb}] for verb in VERBS], attrs={"POS": "VERB"})
    pipeline.to_disk(folder)
    return str(folder)
