"""The report: what a run did, in pictures; one HTML file that opens without a network."""

from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

import yaml
from markupsafe import Markup

from paraloom.beam_jobs.io import schema, storage
from paraloom.beam_jobs.io.shards import content_key
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.exclusion import RULES
from paraloom.models.languages import short_code
from paraloom.pipeline.judging.agreement import corpus_precisions, join, measure
from paraloom.pipeline.judging.judgments import judgments_digest, read_judgments
from paraloom.pipeline.manifest import ranked_stage
from paraloom.pipeline.names import stage_path
from paraloom.pipeline.records import (
    AutoSelectRecord,
    BucketRecord,
    EvaluateRecord,
    RunRecord,
    SelectSection,
)
from paraloom.pipeline.report.describe import excluded_rows, resolve_auto, score
from paraloom.pipeline.report.final_view import final_view, rounds
from paraloom.pipeline.report.generators import compare_generators
from paraloom.pipeline.report.render import render_html
from paraloom.pipeline.report.report_data import read_scores, regions
from paraloom.pipeline.report.savings import savings
from paraloom.pipeline.report.tradeoffs import TEXTS, Sample, criteria_of, draw, thresholds
from paraloom.pipeline.stage import shards_of
from paraloom.pipeline.stages.generate import GenerateRecord

VERSION = 7
"""Bump when the report looks different for the same run."""

_PRECISIONS = (0.8, 0.9)  # of the cuts that judgments recommend
_RANDOM, _MISSED = 20, 10  # pairs shown of the corpus, and of those that just missed it


def report_path(folder: str) -> str:
    """The path of the report of the run in `folder`."""
    return storage.join(folder, "report", "index.html")


def write_report(folder: str, record: RunRecord) -> bool:
    """Write the report of a run, unless the one that is there was made from the same record and
    judgments; returns whether it was written."""
    path = report_path(folder)
    values = record.json_values()
    judgments = [digest] if (digest := judgments_digest(folder)) else []
    parts = [*(values[of] for of in ("config", "versions", "stages")), *judgments]
    key = content_key("report", VERSION, *parts)
    mark = f'<meta name="paraloom-key" content="{key}"'  # as in report.html.j2
    if storage.exists(path) and mark.encode() in storage.read_bytes(path)[:500]:
        return False
    storage.write_bytes(path, document(folder, record, key).encode())
    return True


class Section(NamedTuple):
    """A part of the page: its anchor, its heading, its content."""

    anchor: str
    heading: str
    content: Markup


def document(folder: str, record: RunRecord, key: str = "") -> str:
    """The report as HTML, with a section for each part that the run has."""
    view = final_view(record)
    bucket = view.find(BucketRecord)
    found: list[Section] = []
    if view.pair_records:
        found.append(
            section(
                "rows",
                "Rows of each stage",
                stages=view.pair_records,
                many=view.config.nmt.candidates,
                saved=savings(view),
            )
        )
    if bucket and bucket.rows_out:
        stage = ranked_stage(record.stages)
        select, source = resolve_auto(view), view.config.input
        region = regions(select, bucket.deciles)
        scores = read_scores(
            folder,
            bucket.deciles,
            with_corpus="select" in view.stages,
            stage=stage,
            limited=list(region),
        )
        data: dict[str, Any] = {
            "select": select,
            "region": region,
            "scores": scores,
            "score": partial(score, own=view.own_scorers),
            "source_language": short_code(source.source_language) if source else "",
            "language": view.language,
        }
        corpus = view.stages.get("select")
        pairs = _pairs(folder, view, bucket, stage, select)
        found += [
            section(
                "selection",
                "Selection",
                corpus=corpus,
                excluded=excluded_rows(view),
                rules=RULES,
                **data,
                **pairs,
            ),
            *_auto_selections(record),
            section("scores", "Scores", **data),
            *_judgments(folder, record, bucket, stage),
            *(
                [section("generators", "Generators", found=compare_generators(folder, record))]
                if record.find(GenerateRecord)
                else []
            ),
            section("pairs", "Example pairs", **data, **pairs),
        ]
    if "loop" in view.stages:
        found.append(section("rounds", "Rounds", record=record))
    if evaluated := _evaluations(record):
        found.append(section("evaluation", "Sentence similarity", "sts", evaluated=evaluated))
    config = yaml.safe_dump(record.json_values()["config"], sort_keys=False, allow_unicode=True)
    found += [
        section("stages", "Stages", record=record),
        section("record", "Inputs, versions and configuration", record=record, config=config),
    ]
    title = PurePath(view.config.run).name or view.config.run
    html = render_html("report.html.j2", key=key, title=title, view=view, sections=found)
    return str(html)  # Markup would escape what is added to it


def section(template: str, heading: str, anchor: str = "", **values: object) -> Section:
    """The section of `templates/<template>.html.j2`; its anchor has the same name by default."""
    return Section(anchor or template, heading, render_html(f"{template}.html.j2", **values))


def _pairs(
    folder: str, view: RunRecord, bucket: BucketRecord, stage: str, select: SelectSection
) -> dict[str, Any]:
    """What every threshold of the selection keeps, and pairs on either side of them."""
    shards, seed, scores = shards_of(folder, stage), view.config.seed, bucket.deciles
    sample = Sample.read(shards, view, list(scores), read_judgments(folder))
    criteria = criteria_of(select, view)
    on_scores = {*scores, *map(schema.decile, scores)}
    each = [one for one in thresholds(criteria) if one[0].column in on_scores]
    curves = [sample.curve(*one) for one in each]
    corpus = shards_of(folder, "select") if "select" in view.stages else []
    ordered = sorted(scores, key=lambda name: name != select.by)  # the one that selects first
    return {
        "curves": [one for one in curves if one.chosen.share < 1],
        "frontier": sample.frontier(criteria, list(scores)),
        "examples": {score: sample.examples(score, seed) for score in ordered},
        "random": draw(corpus, _RANDOM, seed, TEXTS).to_pylist(),
        "missed": sample.missed(criteria, _MISSED, seed),
    }


def _judgments(folder: str, run: RunRecord, bucket: BucketRecord, stage: str) -> Iterator[Section]:
    view = final_view(run)
    if judgments := read_judgments(folder):
        shards, select = shards_of(folder, stage), view.config.select
        where = map(Predicate.parse, select.where if select.by == "judged" else ())
        scores = list(bucket.deciles)
        pairs = join(judgments, shards, scores, own=view.own_scorers, where=list(where))
        precisions = sorted({*_PRECISIONS, select.precision})
        found = measure(pairs, good=select.good, precisions=precisions, seed=view.config.seed)
        corpora = corpus_precisions(folder, run).values()
        yield section("judgments", "Judgments", found=found, select=select, corpora=corpora)


def _auto_selections(record: RunRecord) -> Iterator[Section]:
    """The automatic selection of deciles in every round, or in the only one."""
    for number in rounds(record) or [0]:
        if result := record.find(AutoSelectRecord, stage_path("auto_select", number)):
            heading = "Automatic selection of deciles" + (f", round {number}" if number else "")
            anchor = f"auto_select-{number}" if number else ""
            yield section("auto_select", heading, anchor, result=result, number=number)


def _evaluations(record: RunRecord) -> list[tuple[str, EvaluateRecord]]:
    """The results of every round, or of the only one (with the name "")."""
    found = [
        (f"round {number}" if number else "", stage_path("evaluate", number))
        for number in rounds(record) or [0]
    ]
    return [(name, of) for name, path in found if (of := record.find(EvaluateRecord, path))]
