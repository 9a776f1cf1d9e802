"""The report: what a run did, in pictures; one HTML file that opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import PurePath
from typing import Any

from beam_jobs.io import storage
from beam_jobs.io.shards import content_key
from pipeline.report.describe import selected
from pipeline.report.final_view import kept, kept_round, rounds
from pipeline.report.page import Section, key_of, page, tiles
from pipeline.report.report_data import read_scores
from pipeline.report.sections import (
    choice_section,
    evaluation_section,
    headline,
    histogram_section,
    pairs_section,
    record_section,
    rounds_section,
    rows_section,
    selection_section,
    stages_section,
    subtitle,
)
from pipeline.stage import place

VERSION = 2
"""Raised when the report looks different for the same run."""


def report_path(folder: str) -> str:
    """Where the report of the run in `folder` stands."""
    return storage.join(folder, "report", "index.html")


def write_report(folder: str, record: dict[str, Any]) -> bool:
    """Write the report of a run, if the one that is there does not say the same already.

    Args:
        record: what the manifest holds: config, versions, inputs, stages.

    Returns:
        whether it was written.

    Raises:
        UserError: a shard is damaged or missing, or the folder cannot be written.
    """
    path = report_path(folder)
    key = content_key("report", VERSION, *(record[of] for of in ("config", "versions", "stages")))
    if storage.exists(path) and key_of(storage.read_bytes(path)) == key:
        return False
    storage.write_bytes(path, document(folder, record, key).encode())
    return True


def document(folder: str, record: dict[str, Any], key: str = "") -> str:
    """The report as HTML: a section for everything that the run has."""
    result = kept(record)
    config, accounts = result["config"], result["stages"]
    config = {**config, "select": selected(config["select"], accounts)}
    sections: list[Section | None] = [rows_section(accounts)]
    if accounts.get("bucket", {}).get("rows_out"):
        deciles = accounts["bucket"]["deciles"]
        scores = read_scores(
            folder,
            deciles,
            seed=config["seed"],
            with_corpus="corpus" in accounts,
            stage=place("bucket", kept_round(record["stages"])),
        )
        sections += [
            selection_section(config, accounts, scores),
            *_choices(record),
            histogram_section(config, accounts, scores),
            pairs_section(config, scores),
        ]
    if "loop" in accounts:
        sections.append(rounds_section(record))
    if "evaluate" in accounts:
        sections.append(evaluation_section(_evaluations(record)))
    sections += [stages_section(record["stages"]), record_section(record)]
    title = PurePath(config["run"]).name or config["run"]
    made_from = escape(subtitle(config, record.get("inputs", [])))
    head = f'<p class="quiet">{made_from}</p>{tiles(headline(accounts))}'
    return page(title, key, head, [section for section in sections if section])


def _choices(record: dict[str, Any]) -> list[Section]:
    """The choice of deciles in every round, or in the only one; none where none was made."""
    numbers = [each.number for each in rounds(record)] or [0]
    named = {number: place("choice", number) for number in numbers}
    stages = record["stages"]
    return [choice_section(stages[name], n) for n, name in named.items() if name in stages]


def _evaluations(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The results of every round, or of the only one."""
    stages = record["stages"]
    named = {f"round {r.number}": place("evaluate", r.number) for r in rounds(record)}
    named = named or {"": "evaluate"}
    return [(name, stages[stage]["results"]) for name, stage in named.items()]
