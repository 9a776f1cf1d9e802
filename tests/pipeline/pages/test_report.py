"""The report as a document: whole, self-contained, true, and written when it changes."""

import copy
import re
from html import escape, unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs import bucket
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import read_shard
from paraloom.beam_jobs.transforms.shares import Deciles
from paraloom.pipeline.pages import report
from paraloom.pipeline.pages.describe import percent, readable
from paraloom.pipeline.pages.plots import BINS, CELLS, axis, density, histogram, shades, ticks
from paraloom.pipeline.pages.render import environment, mark_differences
from paraloom.pipeline.run.folder import shards_of
from paraloom.pipeline.run.records import EvaluateRecord, RunRecord
from paraloom.pipeline.stages import folder_of
from tests.pipeline.pages.made_run import SCORERS, MadeRun
from tests.shards import accepted


def trial(deciles: list[int], *scores: float) -> dict[str, Any]:
    return {"scorer": "unigram_f1", "deciles": deciles, "pairs": 60, "scores": list(scores)}


CHOICE: dict[str, Any] = {
    "trials": [trial([*range(9 - n, 10)], 61 - n, 62 - n, 60.5 - n) for n in range(10)],
    "chosen": trial([9], 61, 62, 60.5),
    "seconds": 12.0,
}


def document(folder: str, record: dict[str, Any]) -> str:
    return report.document(folder, RunRecord.model_validate(record))


def elements(text: str) -> list[ElementTree.Element]:
    """All elements of the document, which is XML but for HTML's short forms."""
    whole = text.removeprefix("<!doctype html>").replace("<details open>", "<details>")
    closed = re.sub(r"<(meta|link|hr)\b([^>]*)>", r"<\1\2/>", whole)
    return [*ElementTree.fromstring(closed).iter()]


@pytest.fixture
def record(made_run: MadeRun) -> dict[str, Any]:
    full: dict[str, Any] = copy.deepcopy(made_run.record)
    full["stages"]["auto_select"] = CHOICE
    full["stages"]["nmt"] = {"training": {"bleu": 31.64}, "seconds": 60.0}
    return full


def test_it_is_whole_and_fetches_nothing(made_run: MadeRun, record: dict[str, Any]) -> None:
    """Though its texts and names look like markup."""
    record["config"]["run"] = "/runs/<script>alert(1)</script>&"
    text = document(made_run.folder, record)
    assert "<b>x" not in text and "&lt;" in text
    attributes = [pair for element in elements(text) for pair in element.attrib.items()]
    ids = [value for name, value in attributes if name == "id"]
    links = [value for name, value in attributes if name in ("src", "href", "srcset")]
    assert len(set(ids)) == len(ids)
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert {link[1:] for link in links if link[0] == "#"} <= set(ids)
    assert not re.search(r"url\(|@import|https?://|<script[^>]|fetch|XMLHttp", text)
    assert text.count("<script>") == 1
    assert (
        text.count('class="side"') == text.count('dir="auto"') > 0
    )  # of languages to the left, too


def test_every_picture_says_what_it_shows(made_run: MadeRun, record: dict[str, Any]) -> None:
    text = document(made_run.folder, record)
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    # twice the flow, two densities, two thresholds that keep some and the frontier, a histogram a
    # score
    assert len(pictures) == 2 + 2 + 3 + 4
    for picture in pictures:
        svg = ElementTree.fromstring(picture)
        title, saying = svg.find("title"), svg.find("desc")
        assert title is not None and title.text
        assert saying is not None and saying.text
        assert svg.get("aria-labelledby", "").split() == [title.get("id"), saying.get("id")]
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text, re.DOTALL)
    assert len(captions) == len(pictures) - 1  # of the two flows, one is shown
    assert all(captions)


def test_it_says_what_the_manifest_says(made_run: MadeRun, record: dict[str, Any]) -> None:
    text = document(made_run.folder, record)
    rows = record["stages"]["select"]["rows_out"]
    assert f"<dd>{rows:,}</dd>" in text
    assert "− 30 (8%) empty reference" in text
    for reason, count in record["stages"]["select"]["rejected"].items():
        assert f"− {count:,} (" in text
        assert reason.split()[0] in text
    assert "31.6" in text
    assert "<b>Chosen: unigram f1, decile 9: 61.2 ± 0.8 with 60 pairs</b>" in text
    assert "Second best: unigram f1, deciles 8–9: 60.2 ± 0.8 with 60 pairs" in text
    assert "All pairs: unigram f1, deciles 0–9: 52.2 ± 0.8" in text
    pearson = record["stages"]["evaluate"]["results"]["groups"]["STS 2015"]["mean"]["letters"]
    assert f"{pearson['pearson']:.1f}" in text
    assert "0" * 64 in text
    assert "max_tokens: 11" in text
    assert "peak memory" not in text
    assert "input.clean" not in text
    record["stages"]["ingest"]["cleaned"] = {"entities": 1234, "nfc": 0}
    said = "HTML entities in 1,234, characters not in NFC in 0."
    assert f"<code>input.clean</code> changed: {said}" in document(made_run.folder, record)
    record["stages"]["auto_select"] = {**CHOICE, "labelled": 280}
    sure = "with 60 pairs (280 labelled pairs, 95% interval 53.3 to 68.0)</b>"
    assert sure in document(made_run.folder, record)


def test_a_run_that_only_began(made_run: MadeRun, record: dict[str, Any], tmp_path: Path) -> None:
    stages = {"ingest": record["stages"]["ingest"]}
    text = document(str(tmp_path / "nothing"), {**record, "stages": stages})
    elements(text)
    assert ">Rows of each stage<" in text
    for heading in ("Selection", "Scores", "Sentence similarity"):
        assert f">{heading}<" not in text


@pytest.mark.parametrize("rows", [1, 3])
def test_fewer_pairs_than_deciles_and_an_empty_corpus(
    made_run: MadeRun, record: dict[str, Any], tmp_path: Path, rows: int
) -> None:
    part, decile = made_run.pairs.slice(0, rows), np.arange(rows) * 10 // rows
    names = list(record["stages"]["bucket"]["deciles"])
    for name in names:
        index = part.schema.get_field_index(schema.decile(name))
        column = pa.array(decile, pa.int8())
        part = part.set_column(index, part.schema.field(index), column)
    deciles = {n: bucket._by_decile(part[n].to_numpy(), decile) for n in names}
    numbers = bucket.BucketMeasurements(deciles=deciles)
    for stage, left in (("bucket", part), ("select", part.slice(0, 0))):
        record["stages"][stage] |= {"rows_in": rows, "rows_out": left.num_rows}
        made = accepted(tmp_path / folder_of(stage), "part", left, numbers=numbers)
        record["stages"][stage] |= {"deciles": bucket.summarise([made])}
    text = document(str(tmp_path), record)
    elements(text)
    drawn = " ".join(re.findall("<svg.*?</svg>", text, re.DOTALL))
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_rounds_stand_side_by_side(made_run: MadeRun) -> None:
    first = made_run.record["stages"]["evaluate"]["results"]
    second = copy.deepcopy(first)
    second["groups"]["STS 2015"]["mean"]["letters"] = {"pearson": 98.76, "spearman": None}
    results = [EvaluateRecord.model_validate({"results": each}) for each in (first, second)]
    rounds = [("round 1", results[0]), ("round 2", results[1])]
    content = report.section("evaluation", "", evaluated=rounds)["content"]
    heads = re.findall(r"<th[^>]*>(round[^<]*)<", content)
    assert heads == [f"round {n} {kind}" for n in (1, 2) for kind in ("Pearson", "Spearman")]
    found = re.search(r'<tr class="mean">.*?</tr>', content, re.DOTALL)
    assert found is not None
    mean = found.group()
    assert mean.count("<td") == 5
    assert "98.8" in mean
    assert "undefined" in mean


def test_pairs_on_either_side_of_the_selection(made_run: MadeRun, record: dict[str, Any]) -> None:
    text = document(made_run.folder, record)
    assert ">Pairs that just missed the corpus: 10<" in text
    why = "not trigram_overlap|outside the selected deciles of unigram_f1: |more tokens than "
    assert len(re.findall(f"<br/>({why})", text)) == 10


Shown = list[tuple[list[float], dict[str, str]]]


def shown(text: str, group: str) -> Shown:
    """The pairs of a sample in the page: scores by which they are found, and what is said."""
    found = []
    for pair in elements(text):
        if pair.get("class") == "pair" and pair.get("data-group") == group:
            lines = ["".join(line.itertext()).split(maxsplit=1) for line in pair.iter("p")]
            said = {line[0]: line[1].strip() for line in lines[:3]}
            below = " ".join("".join([*pair.iter("p")][3].itertext()).split())
            values = pair.get("data-values", "").split()
            found.append(([*map(float, values)], {**said, "below": below}))
    return found


def test_random_pairs_with_their_scores(made_run: MadeRun, record: dict[str, Any]) -> None:
    text = document(made_run.folder, record)
    assert text == document(made_run.folder, record), "the same seed draws the same pairs"
    selected = pa.concat_tables(map(read_shard, shards_of(str(made_run.folder), "select")))
    rows = {row["id"]: row for row in made_run.pairs.to_pylist()}
    for group, most, ids in (("corpus", 200, {*selected["id"].to_pylist()}), ("scored", 300, rows)):
        found = shown(text, group)
        assert len(found) == min(most, len(ids))
        names = [said["below"].rpartition(" ")[2] for _, said in found]
        assert len({*names}) == len(names) and {*names} <= {*ids}
        assert names[:20] != sorted(names, key=[*rows].index)[:20], "in random order"
        for name, (values, said) in zip(names, found, strict=True):
            row = rows[name]
            assert values == [round(row[score], 3) for score in SCORERS]
            sides = {side: row[side] for side in ("source", "reference", "translation")}
            assert {side: " ".join(said[side].split()) for side in sides} == sides
            assert f"unigram f1 {row['unigram_f1']:.3f} · " in said["below"]
    assert f"This page has {len(selected) + 300} random pairs" in " ".join(text.split())
    assert "candidate" not in shown(text, "corpus")[0][1]["below"]


def test_long_texts_are_cut_and_candidates_numbered() -> None:
    of: dict[str, Any] = {"id": "x", "source": "a " * 9000}
    of |= {"reference": "b" * 20_000, "translation": "<i> " * 9000}
    of |= {"candidate": 3, "generator": "small", "f1": 0.25}
    macros = environment(autoescape=True).from_string(
        '{% from "macros.html.j2" import pair with context %}{{ pair(of, "en", "cs", ["f1"]) }}'
    )
    names = {"mark_differences": mark_differences, "readable": readable}
    macros.environment.filters["readable"] = readable
    text = macros.render(of=of, **names)
    assert len(text) < 6000 and text.count("…") == 3 and "<i>" not in text
    assert "f1 0.250 · candidate 3 of small ·" in " ".join(text.split())


CHAT = {"kind": "chat", "name": "a", "model": "m", "base_url": "http://localhost/v1"}


@pytest.mark.parametrize("several", [{"nmt": {"candidates": 3}}, {"generators": [CHAT]}])
def test_more_pairs_than_rows_are_no_share_of_them(
    made_run: MadeRun, record: dict[str, Any], several: dict[str, Any]
) -> None:
    tile = "<dt>share of the rows read</dt>"
    assert tile in document(made_run.folder, record)
    for section, values in several.items():
        own = record["config"].get(section)
        record["config"][section] = {**own, **values} if isinstance(own, dict) else values
    record["stages"]["ingest"] |= {"rows_in": 50, "rows_out": 50, "rejected": {}}
    text = document(made_run.folder, record)
    rows = record["stages"]["select"]["rows_out"]
    assert tile not in text
    share = f"<dt>share of the scored candidates</dt><dd>{percent(rows, 360)}</dd>"
    assert share in text


def test_sources_and_candidates_have_their_names(made_run: MadeRun, record: dict[str, Any]) -> None:
    text = document(made_run.folder, record)
    assert "back_translate: 360 sources in, 360 pairs out" in text
    record["config"]["nmt"]["candidates"] = 3
    text = " ".join(document(made_run.folder, record).split())
    assert "ingest: 400 rows in, 360 sources out" in text
    assert "back_translate: 120 sources in, 360 candidates made, 360 out" in text
    rows = record["stages"]["select"]["rows_out"]
    assert f"select: 360 candidates in, {rows} pairs out" in text


FULL = Deciles(rows=[1] * 10, lowest=[float(k) for k in range(10)], highest=[9.0] * 10)


def test_every_pair_is_counted_where_it_lies(made_run: MadeRun) -> None:
    pairs = made_run.pairs.select(["trigram_overlap", "translation_score"])
    corpus = pairs.slice(0, 50)
    found = density(pairs, corpus, ("trigram_overlap", "translation_score"))
    x, y = (pairs[name].to_numpy().astype(float) for name in pairs.column_names)
    columns = np.clip(np.searchsorted(found.x_edges, x, "right") - 1, 0, CELLS - 1)
    lines = np.clip(np.searchsorted(found.y_edges, y, "right") - 1, 0, CELLS - 1)
    plain = np.zeros((CELLS, CELLS), int)
    for column, line in zip(columns, lines, strict=True):
        plain[column, line] += 1
    assert (found.pairs == plain).all() and found.corpus.sum() == 50
    shaded = [tuple(cell) for _, cells in shades(found, found.pairs) for cell in cells]
    assert sorted(shaded) == sorted(map(tuple, np.argwhere(plain > 0).tolist()))
    assert not density(pairs, pairs.slice(0, 0), ("trigram_overlap",) * 2).corpus.any()

    shown = histogram(y, y[:0], FULL)
    assert y.min() < shown.edges[0]  # a long tail is cut
    assert shown.pairs[0] == pytest.approx(np.mean(y < shown.edges[1]))
    assert shown.pairs.sum() == pytest.approx(1) and not shown.corpus.any()
    assert shown.bounds == FULL.lowest[1:]


@pytest.mark.parametrize("values", [[1.0], [1.0] * 20, [0.0, *[1.0] * 19], list(range(20))])
def test_any_values_have_an_axis(values: list[float]) -> None:
    edges = axis(np.array(values, np.float32), BINS)
    assert len(edges) == BINS + 1 and (np.diff(edges) > 0).all()
    assert edges[0] <= np.median(values) <= edges[-1]


@given(st.text(max_size=40), st.text(max_size=40))
def test_marked_texts_are_the_texts(first: str, second: str) -> None:
    for text, html in zip((first, second), mark_differences(first, second), strict=True):
        assert unescape(re.sub("</?mark>", "", html)) == text
    if first.lower() == second.lower():
        assert "<mark>" not in "".join(mark_differences(first, second))


def test_marks_are_on_what_differs() -> None:
    reference, translation = mark_differences("A man < a dog.", "Two men < a dog!")
    assert reference == "<mark>A man</mark> &lt; a dog<mark>.</mark>"
    assert translation == "<mark>Two men</mark> &lt; a dog<mark>!</mark>"
    assert mark_differences("A DOG", "a dog") == ("A DOG", "a dog")
    _, by_characters = mark_differences("猫が走る。", "犬が走る。", "ja")
    assert by_characters == "<mark>犬</mark>が走る。"
    _, hindi = mark_differences("कुत्ता दौड़ा।", "कुत्ते दौड़े।", "hi")
    assert hindi == "<mark>कुत्ते दौड़े</mark>।"
    _, thai = mark_differences("ฉันรัก", "ฉันรู้", "th")
    assert thai == "ฉัน<mark>รู้</mark>"


def test_long_crafted_pairs_are_marked() -> None:
    """With a quadratic algorithm, this takes minutes."""
    for first, second in (("a b " * 5000, "b a " * 5000), ("a b < " * 10_000, "x a < " * 10_000)):
        html = mark_differences(first, second)
        assert [re.sub("</?mark>", "", of) for of in html] == [escape(first), escape(second)]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_within(low: float, width: int) -> None:
    found = ticks(low, low + width)
    slack = 1e-6 * max(abs(low), width)
    assert 1 <= len(found) <= 6
    assert all(low - slack <= value <= low + width + slack for value in found)
    assert found == sorted(set(found))
