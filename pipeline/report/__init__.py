"""The report: what a run did, in pictures; one HTML file that opens without a network."""

from __future__ import annotations

from pathlib import PurePath

from beam_jobs.io import storage
from beam_jobs.io.shards import content_key
from pipeline.records import AutoSelectRecord, BucketRecord, EvaluateRecord, RunRecord
from pipeline.report import sections
from pipeline.report.describe import resolve_auto
from pipeline.report.final_view import best_round, final_view, rounds
from pipeline.report.render import render_html
from pipeline.report.report_data import read_scores
from pipeline.report.sections import Section
from pipeline.stage import stage_path

VERSION = 3
"""Bump when the report looks different for the same run."""

_KEY = '<meta name="paraloom-key" content="'  # as in report.html.j2


def report_path(folder: str) -> str:
    """The path of the report of the run in `folder`."""
    return storage.join(folder, "report", "index.html")


def write_report(folder: str, record: RunRecord) -> bool:
    """Write the report of a run, unless the file that is there was made from the same record.

    Returns:
        whether it was written.

    Raises:
        UserError: a shard is damaged or missing, or the folder cannot be written.
    """
    path = report_path(folder)
    values = record.json_values()
    key = content_key("report", VERSION, *(values[of] for of in ("config", "versions", "stages")))
    if storage.exists(path) and _key_of(storage.read_bytes(path)) == key:
        return False
    storage.write_bytes(path, document(folder, record, key).encode())
    return True


def document(folder: str, record: RunRecord, key: str = "") -> str:
    """The report as HTML, with a section for each part that the run has."""
    view = final_view(record)
    select = resolve_auto(view)
    found: list[Section | None] = [sections.rows(view)]
    bucket = view.find(BucketRecord)
    if bucket and bucket.rows_out:
        scores = read_scores(
            folder,
            bucket.deciles,
            seed=view.config.seed,
            with_corpus="corpus" in view.stages,
            stage=stage_path("bucket", best_round(record.stages)),
        )
        found.append(sections.selection(select, bucket, scores))
        for number in [each.number for each in rounds(record)] or [0]:
            if auto := record.find(AutoSelectRecord, stage_path("choice", number)):
                found.append(sections.auto_selection(auto, number))
        found.append(sections.score_histograms(select, bucket, scores))
        found.append(sections.example_pairs(view, select, scores))
    if "loop" in view.stages:
        found.append(sections.loop(record))
    if evaluated := _evaluations(record):
        found.append(sections.evaluation(evaluated))
    found += [sections.stages(record), sections.provenance(record)]
    html = render_html(
        "report.html.j2",
        key=key,
        title=PurePath(view.config.run).name or view.config.run,
        subtitle=sections.subtitle(view),
        headline=sections.headline(view),
        sections=[section for section in found if section],
    )
    return str(html)  # Markup would escape what is added to it


def _key_of(document: bytes) -> str | None:
    """The key in a document that `write_report` wrote."""
    _, found, rest = document[:500].decode(errors="replace").partition(_KEY)
    return rest.partition('"')[0] if found else None


def _evaluations(record: RunRecord) -> list[tuple[str, EvaluateRecord]]:
    """The results of every round, or of the only one (with the name "")."""
    names = {f"round {r.number}": stage_path("evaluate", r.number) for r in rounds(record)}
    found = {name: record.find(EvaluateRecord, path) for name, path in (names or {"": ""}).items()}
    return [(name, evaluated) for name, evaluated in found.items() if evaluated]
