"""The tables of the documents are those of the code; a new declaration is a new row."""

from collections import Counter

import numpy as np
import pytest

from paraloom.models.scorers import SCORERS, Resource, Scorer
from paraloom.papers.documentation import PAGES
from paraloom.papers.tables import TABLES, filled, names

TEXTS = {path.name: path.read_text("utf-8") for path in PAGES}


@pytest.mark.parametrize("page", [name for name, text in TEXTS.items() if names(text)])
def test_the_tables_of_the_page_are_fresh(page: str) -> None:
    assert TEXTS[page] == filled(TEXTS[page]), "run `make docs`"


def test_each_table_stands_once() -> None:
    found = Counter(name for text in TEXTS.values() for name in names(text))
    assert found == Counter(TABLES.keys())


def test_a_new_scorer_is_a_new_row(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Resource(name="words", open=str, remedy="a list: set score.words to it")
    score = Scorer(
        function=np.zeros,
        meaning="a | b",
        unit="",
        range=(-2.0, None),
        higher_is_better=False,
        reads=("source", "reference"),
        resource=given,
    )
    monkeypatch.setitem(SCORERS, "mine", score)
    row = (
        "| `mine` | ≥ −2; lower is better | `source`; a list: set `score.words` to it | a \\| b |\n"
    )
    before = TEXTS["scorers.md"]
    assert filled(before) == before.replace("\n<!-- end -->", f"\n{row}<!-- end -->")
