import pytest

from paraloom.pipeline.records import RunRecord
from paraloom.pipeline.report.savings import savings


@pytest.mark.parametrize("candidates", [1, 4])
def test_hours_are_those_of_sources_and_not_of_their_translations(candidates: int) -> None:
    ingest = {"rows_out": 90, "saved": {"input.where": {"rows": 10, "tokens": 50}}}
    translated = {
        "rows_in": 90 * candidates,
        "rows_out": 80 * candidates,
        "worker_seconds": 6000.0,
        "saved": {"input.unique": {"rows": 30, "tokens": 200}},
    }
    record = RunRecord.model_validate({"stages": {"ingest": ingest, "back_translate": translated}})
    where, unique = savings(record)  # 100 seconds for each of 60 sources
    assert (where.rows, unique.rows) == (10, 30)
    assert where.hours == pytest.approx(1000 / 3600)
    assert unique.hours == pytest.approx(3000 / 3600)


def test_plain_text_saves_two_translations() -> None:
    saved = {"input.unique": {"rows": 10, "tokens": 40}}
    pivot = {"rows_in": 60, "rows_out": 40, "worker_seconds": 100.0, "saved": saved}
    back = {"rows_in": 80, "rows_out": 80, "worker_seconds": 60.0, "saved": saved}
    ingest = {"rows_out": 60, "saved": {"input.where": {"rows": 9, "tokens": 9}}}
    stages = {"ingest": ingest, "pivot": pivot, "back_translate": back}
    hours = {s.key: s.hours for s in savings(RunRecord.model_validate({"stages": stages}))}
    assert hours == {
        "input.where": pytest.approx(9 * (2 + 2) / 3600),
        "input.unique (pivot)": pytest.approx(10 * 2 / 3600),
        "input.unique (back_translate)": pytest.approx(10 * 2 / 3600),
    }
