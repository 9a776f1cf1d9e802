"""The papers' tables: what holds for all of them, and orders and figures as printed."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks.experiments import context, labelled, paranmt, phrases, revisiting, supervised
from benchmarks.experiments import paranmt_figures as figures
from benchmarks.experiments.cells import Inputs
from paraloom.models.embeddings.datasets.similarity import SEMEVAL
from paraloom.models.embeddings.encoders import check_encoder
from paraloom.models.embeddings.options import EmbeddingOptions

KINDS = [context, labelled, paranmt, phrases, revisiting, supervised]
NOWHERE = Inputs(**dict.fromkeys(("corpus", "phrases", "sts", "sick", "books", "folder"), Path()))


def options_in(cell: Any) -> Iterator[EmbeddingOptions]:
    """The options of all trainings of a cell."""
    for value in vars(cell).values():
        if isinstance(value, EmbeddingOptions):
            yield value
        elif hasattr(value, "__dataclass_fields__"):
            yield from options_in(value)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_of_encoders_and_claims_name_rows(kind: ModuleType) -> None:
    for table in kind.tables(NOWHERE).values():
        for cell in table.rows.values():
            for options in options_in(cell):
                check_encoder(options)
        for claim in table.claims:
            assert {*claim.rows} <= {*table.rows}
            assert kind not in (revisiting, supervised) or not table.shares_trainings(claim)
        assert table.reported and not {"mse", "development_decile"} & set(table.reported)
        ours = {row for row in table.rows if "(ours)" in row}
        assert not ours & set(table.paper) and set(table.prefixes) <= set(table.rows)
        if kind is paranmt:  # sources that are not there have figures, too
            assert set(table.rows) - ours <= set(table.paper)
        else:
            assert set(table.paper) <= set(table.rows)


def test_the_claims_of_paranmt() -> None:
    found = paranmt.tables(NOWHERE)
    rows = {row for row in found["paranmt7"].rows if "ours" not in row}
    assert rows == {row for row in figures.ROWS if not row.endswith("900") and "BiLSTM" not in row}
    two = ["Trigram-Word-LSTM, concatenated", "Word"]
    (order,) = (claim for claim in found["paranmt7"].claims if claim.rows == two)
    assert order.printed["sts_2016"] == -0.7 and order.stated  # 77.5 and 76.8
    larger = {claim.better for claim in found["paranmt8"].claims if claim.worse == "LSTM Avg"}
    assert "LSTM Avg, 600" in larger  # 6.5.1: they help on transfer
    stated = {tuple(claim.rows) for claim in found["paranmt8"].claims if claim.stated}
    assert ("Trigram-Word, concatenated", "LSTM Avg") in stated  # section 7: larger dimensions
    assert ("Trigram-Word, concatenated", "LSTM Avg, 600") not in stated  # as many


@pytest.mark.parametrize(
    ("module", "name", "better", "worse"),
    [
        (revisiting, "wg2", "LSTM Avg", "LSTM, scrambling"),  # 4.2: the most effective modification
        (supervised, "wg5-sick", "GRAN, scrambling", "AVG"),  # 4.3: the GRAN is best
        (context, "decoding-transfer", "BOW–GRU, concat", "BOW–BOW, encoder"),  # 5: curiously
    ],
)
def test_claims_of_the_text(module: ModuleType, name: str, better: str, worse: str) -> None:
    claims = module.tables(NOWHERE)[name].claims
    (claim,) = (claim for claim in claims if claim.rows == [better, worse])
    assert claim.stated


def test_the_trial_pairs_choose_the_epoch_if_there_are_test_pairs(inputs: Inputs) -> None:
    def held_out(name: str) -> set[float | None]:
        rows = supervised.tables(inputs)[name].rows.values()
        return {cell.options.similarity.held_out for cell in rows}

    assert held_out("wg5-sick") == {0.1}
    (inputs.sick / "SICK_test_annotated.txt").write_text("x")
    assert held_out("wg5-sick") == {None} and held_out("wg5-sts") == {0.1}
    assert supervised.tables(inputs)["wg5-sick"].measures["pearson"] == "SICK test"


def test_means_of_the_paper_are_over_the_data_sets_at_hand(inputs: Inputs) -> None:
    """Not its own means, 62.5 and 63.4, which have MSRvid and SMT."""
    years = ("2012", "2013", "2014", "2015")
    for year in years:
        (inputs.sts / year).mkdir(exist_ok=True)
        for name in {*SEMEVAL[year]} - {"MSRvid", "SMT"}:
            (inputs.sts / year / f"{name}.tsv").touch()
    tables = revisiting.tables(inputs)
    table = tables["wg4"]
    by_year = [table.paper["GRAN"][f"STS {year}"] for year in years]
    assert by_year == [56.8, 71.0, 75.9, 77.7]
    assert "STS 2012 MSRvid" not in table.measures and len(table.measures) == 18 + 4 + 1
    correlated = tables["wg4-correlation"].paper
    assert [of["pearson"] for of in correlated.values()] == [97.6, 96.3, 97.6]
    (inputs.sts / "2012" / "MSRvid.tsv").touch()
    (inputs.sts / "2013" / "SMT.tsv").touch()
    of_all = revisiting.tables(inputs)["wg4"].paper["GRAN"]
    assert (of_all["STS 2012"], of_all["STS 2013"]) == (62.5, 63.4)  # as printed
