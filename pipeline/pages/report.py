"""The report of a run: one HTML file that needs no network."""

import math
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from typing import Any

from paraloom.beam_jobs.engine import schema
from paraloom.pipeline.judging.agreement import corpus_precisions
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.pages.describe import score
from paraloom.pipeline.pages.generators import SAMPLE, compare_generators
from paraloom.pipeline.pages.plots import axes, density, histogram
from paraloom.pipeline.pages.render import as_yaml, render_html
from paraloom.pipeline.pages.tradeoffs import PAIRS, TEXTS, Sample, draw, regions, some, thresholds
from paraloom.pipeline.run.folder import shards_of
from paraloom.pipeline.run.records import AutoSelectRecord, BucketRecord, EvaluateRecord, RunRecord
from paraloom.pipeline.stages import RANKED
from paraloom.pipeline.stages.generate import GenerateRecord
from paraloom.pipeline.stages.selection import resolve_auto

_CORPUS, _SCORED, _MISSED = 200, 300, 10  # largest numbers of pairs in the report


def document(folder: str, record: RunRecord) -> str:
    """Return the report as HTML, with a section for each finished part of the run."""
    view = record.best
    title = PurePath(view.config.run).name or view.config.run
    sections = list(_sections(folder, record, view))
    html = render_html("report.html.j2", title=title, view=view, sections=sections)
    return str(html)  # `Markup` would escape appended text


def section(template: str, heading: str, anchor: str = "", **values: object) -> dict[str, str]:
    """Render a section from `templates/<template>.html.j2`. The default anchor is `template`."""
    content = render_html(f"{template}.html.j2", **values)
    return {"anchor": anchor or template, "heading": heading, "content": content}


def _sections(folder: str, record: RunRecord, view: RunRecord) -> Iterator[dict[str, str]]:
    by_round = [record.derived(place) for place in record.rounds]
    if view.pair_records:
        many = view.config.nmt.candidates
        yield section("rows", "Rows of each stage", view=view, many=many)
    bucket = view.find(BucketRecord)
    if bucket and bucket.rows_out:
        data = _selection(folder, record, view, bucket)
        yield section("selection", "Selection", **data)
        for number, of in enumerate(by_round, 1):
            if result := of.find(AutoSelectRecord):
                which = f", round {number}" * bool(of.place)
                heading = f"Automatic selection of deciles{which}"
                yield section("auto_select", heading, f"auto_select-{number}", result=result)
        yield section("scores", "Scores", **data)
        if record.find(GenerateRecord):
            tables = compare_generators(folder, record).tables()
            yield section("generators", "Generators", tables=tables, sampled=SAMPLE)
    if "loop" in view.stages:
        yield section("rounds", "Rounds", record=record)
    evaluated = [
        (f"round {number}" * bool(of.place), found)
        for number, of in enumerate(by_round, 1)
        if (found := of.find(EvaluateRecord))
    ]
    if evaluated:
        yield section("evaluation", "Sentence similarity", "sts", evaluated=evaluated)
    yield section("stages", "Stages", record=record)
    config = as_yaml(record.config.model_dump(mode="json"))
    heading = "Inputs, versions and configuration"
    yield section("record", heading, record=record, config=config)


def _selection(
    folder: str, record: RunRecord, view: RunRecord, bucket: BucketRecord
) -> dict[str, Any]:
    select, seed = resolve_auto(view), view.config.seed
    scores, deciles = list(bucket.deciles), bucket.deciles
    sample = Sample.read(shards_of(folder, view.path(RANKED)), view, scores, read_judgments(folder))
    selected = shards_of(folder, view.path("select")) if "select" in view.stages else []
    corpus = draw(selected, PAIRS, seed, [*TEXTS, *scores])
    corpus = corpus if len(corpus) else sample.pairs.slice(0, 0)
    criteria = select.criteria()
    region = regions(criteria, deciles)
    both = axes(scores, [name for name in scores if name in region])
    on_scores = {*scores, *map(schema.decile, scores)}
    curves = [sample.curve(*of) for of in thresholds(criteria) if of[0].column in on_scores]
    samples = [
        ("corpus", "random pairs of the corpus", some(corpus, _CORPUS, seed)),
        ("scored", "random scored pairs", some(sample.pairs, _SCORED, seed)),
    ]
    return {
        "select": select,
        "region": region,
        "rows": bucket.rows_out,
        "density": density(sample.pairs, corpus, both) if both else None,
        "histograms": {
            name: histogram(sample.pairs[name].to_numpy(), corpus[name].to_numpy(), deciles[name])
            for name in scores
        },
        "curves": [of for of in curves if of.chosen.share < 1],
        "frontier": sample.frontier(criteria, scores),
        "samples": samples,
        "shown_pairs": sum(len(rows) for *_, rows in samples),
        "several": schema.has_candidates(sample.pairs),
        "scores": scores,
        "inf": math.inf,
        "missed": sample.missed(criteria, _MISSED, seed),
        "precisions": list(corpus_precisions(folder, record).values()),
        "score": partial(score, own=view.own_scorers),
        "view": view,
    }
