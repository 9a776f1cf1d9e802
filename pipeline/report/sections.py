"""The sections of the report: their data here, their text and captions in `templates/`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePath
from statistics import fmean
from typing import NamedTuple

import numpy as np
import yaml
from markupsafe import Markup

from pipeline.records import (
    AutoSelectRecord,
    BucketRecord,
    CorpusRecord,
    Correlation,
    EvaluateRecord,
    IngestRecord,
    NmtRecord,
    PairsRecord,
    RunRecord,
    SelectSection,
)
from pipeline.report import plots
from pipeline.report.auto_select import mean_deviation, selection_lines
from pipeline.report.describe import deciles_in_words, readable, score, selection_in_words
from pipeline.report.final_view import rounds, verdict
from pipeline.report.render import render_html
from pipeline.report.report_data import SHOWN_DECILES, Array, Scores, regions


class Section(NamedTuple):
    """A part of the page: its anchor, its heading, its content."""

    anchor: str
    heading: str
    content: Markup


def headline(record: RunRecord) -> list[tuple[str, str]]:
    """The most important figures that the run has: (what, value)."""
    found = []
    ingest, corpus = record.find(IngestRecord), record.find(CorpusRecord)
    if ingest:
        found.append(("rows read", f"{ingest.rows_in:,}"))
    if ingest and corpus:
        found.append(("pairs in the corpus", f"{corpus.rows_out:,}"))
        found.append(("of the rows read", plots.percent(corpus.rows_out, ingest.rows_in)))
    if (bleu := trained_bleu(record)) is not None:
        found.append(("BLEU of the translation", f"{bleu:.1f}"))
    if evaluated := record.find(EvaluateRecord):
        groups = evaluated.results.groups.items()
        for name, means in [(name, group.mean) for name, group in groups if group.mean][-1:]:
            value = next(iter(means.values())).pearson
            found.append((f"{name}, mean Pearson × 100", _correlation(value)))
    return found


def subtitle(record: RunRecord) -> str:
    """The inputs and the main settings in one line."""
    files = ", ".join(PurePath(file.path).name for file in record.inputs[:3])
    files += f" and {len(record.inputs) - 3} more" if len(record.inputs) > 3 else ""
    nmt = record.config.nmt
    parts = [files, f"{nmt.engine}, beam {nmt.beam}", f"seed {record.config.seed}"]
    return " · ".join(part for part in parts if part)


def rows(record: RunRecord) -> Section | None:
    """The rows of each stage, and the reasons why rows were rejected."""
    steps = [
        plots.Step(name, stage.rows_in, stage.rows_out, stage.rejected)
        for name, stage in record.pair_records.items()
    ]
    if not steps:
        return None
    wide = plots.flow(steps, name="flow-wide", width=700)
    narrow = plots.flow(steps, name="flow-narrow", width=340)
    content = render_html("rows.html.j2", wide=wide, narrow=narrow)
    return Section("rows", "Rows of each stage", content)


def selection(select: SelectSection, bucket: BucketRecord, scores: Scores) -> Section:
    """Meaning against wording, and the selected part of it."""
    data, pictures = scores.density, {}
    region = regions(select, bucket.deciles)
    if data:
        for name, counts, of in (
            ("density-pairs", data.pairs, "all pairs"),
            ("density-corpus", data.corpus, "corpus"),
        ):
            pictures[name] = plots.density(data, counts, region, of=of, name=name)
    content = render_html(
        "selection.html.j2",
        selection=selection_in_words(select),
        density=data,
        region=region,
        all_pairs=pictures.get("density-pairs"),
        corpus_pairs=pictures.get("density-corpus") if scores.with_corpus else None,
        correlation=_cell_correlation(data.pairs) if data else None,
    )
    return Section("selection", "Selection", content)


def auto_selection(result: AutoSelectRecord, number: int) -> Section:
    """The basis of the automatic selection of deciles, in a round; 0 if there is only one."""
    curves = []
    for scorer, by_decile in result.scores.items():
        means = {decile: fmean(seeds) for decile, seeds in by_decile.items()}
        curves.append(
            {
                "scorer": scorer,
                "scores": by_decile,
                "best": max(means, key=means.__getitem__),
                "worst": min(means, key=means.__getitem__),
                "drawing": plots.curve(result, scorer, name=f"curve-{number}-{scorer}"),
            }
        )
    rows_by_decile = [
        [mean_deviation(of[decile]) if decile in of else "" for of in result.scores.values()]
        for decile in range(10)
    ]
    content = render_html(
        "auto_select.html.j2",
        result=result,
        lines=selection_lines(result),
        curves=curves,
        deciles=list(enumerate(rows_by_decile)),
    )
    heading = "Automatic selection of deciles"
    if not number:
        return Section("choice", heading, content)
    return Section(f"choice-{number}", f"{heading}, round {number}", content)


def score_histograms(select: SelectSection, bucket: BucketRecord, scores: Scores) -> Section:
    """The distribution of every score."""
    region = regions(select, bucket.deciles)
    found = []
    for name, data in scores.histograms.items():
        ends = [float(data.edges[0]), *data.bounds, float(data.edges[-1])]
        meaning = score(name).meaning
        found.append(
            {
                "name": name,
                "drawing": plots.histogram(
                    name, data, region.get(name, []), name=f"histogram-{name}"
                ),
                "meaning": meaning[0].upper() + meaning[1:],
                "middle": (data.bounds[1], data.bounds[7]) if len(data.bounds) == 9 else None,
                "has_empty_width": any(low == high for low, high in pairwise(ends)),
                "beyond": data.beyond,
            }
        )
    return Section("scores", "Scores", render_html("scores.html.j2", plots=found))


def example_pairs(record: RunRecord, select: SelectSection, scores: Scores) -> Section:
    """Pairs from the lowest, a middle and the highest decile of each score."""
    source = record.config.input
    content = render_html(
        "pairs.html.j2",
        first=select.by,
        pairs=sorted(scores.pairs.items(), key=lambda item: item[0] != select.by),
        shown_deciles=SHOWN_DECILES,
        language=source.source_language if source else "",
    )
    return Section("pairs", "Example pairs", content)


def loop(record: RunRecord) -> Section:
    """The results of the rounds, and the best one."""
    found = [
        (each, readable(each.by) + (f", {deciles_in_words(each.deciles)}" if each.deciles else ""))
        for each in rounds(record)
    ]
    content = render_html("rounds.html.j2", verdict=verdict(record), rounds=found)
    return Section("rounds", "Rounds", content)


def evaluation(evaluated: Sequence[tuple[str, EvaluateRecord]]) -> Section:
    """Correlations on STS and SICK.

    Args:
        evaluated: name of the round ("" if there is only one) and its results.
    """
    results = [(name, of.results, model) for name, of in evaluated for model in of.results.models]
    models = list(dict.fromkeys(model for _, _, model in results))
    columns = ["data set", "pairs"]
    for name, _, model in results:
        prefix = f"{name} " * bool(name) + f"{model} " * (len(models) > 1)
        columns += [f"{prefix}Pearson", f"{prefix}Spearman"]
    found, missing = [], []
    for group, content in evaluated[0][1].results.groups.items():
        for test, data in content.data_sets.items():
            of_set = [of.groups[group].data_sets[test].models[model] for _, of, model in results]
            found.append((f"{group} {test}", [f"{data.pairs:,}", *_cells(of_set)], False))
        if content.mean:
            of_group = [(of.groups[group].mean or {})[model] for _, of, model in results]
            found.append((f"{group} mean", ["", *_cells(of_group)], True))
        if content.missing:
            missing.append(f"{group} {', '.join(content.missing)}")
    html = render_html(
        "evaluation.html.j2", models=models, columns=columns, rows=found, missing=missing
    )
    return Section("sts", "Sentence similarity", html)


def stages(record: RunRecord) -> Section:
    """Time, rates and memory of the stages; BLEU of a translation model that the run trained."""
    columns = ["stage", "rows in", "rows out", "seconds", "rows/s", "worker seconds"]
    with_memory = any(stage.peak_memory for stage in record.stages.values())
    if with_memory:
        columns.append("peak memory of a process")
    found = []
    for name, stage in record.stages.items():
        cells = ["", "", f"{stage.seconds:,.1f}", "", ""]
        if isinstance(stage, PairsRecord) and stage.round is None:  # a copied corpus has no rate
            rate = stage.rows_in / max(stage.seconds, 1e-9)
            cells = [f"{stage.rows_in:,}", f"{stage.rows_out:,}", f"{stage.seconds:,.1f}"]
            cells += [f"{rate:,.0f}", f"{stage.worker_seconds:,.1f}"]
        if with_memory:
            cells.append(f"{stage.peak_memory / 2**20:,.0f} MiB" if stage.peak_memory else "")
        found.append((readable(name), cells))
    content = render_html(
        "stages.html.j2",
        columns=columns,
        rows=found,
        with_memory=with_memory,
        bleu=trained_bleu(record),
    )
    return Section("stages", "Stages", content)


def provenance(record: RunRecord) -> Section:
    """Inputs, versions, the whole configuration."""
    config = yaml.safe_dump(record.json_values()["config"], sort_keys=False, allow_unicode=True)
    content = render_html(
        "record.html.j2", inputs=record.inputs, versions=record.versions, config=config
    )
    return Section("record", "Inputs, versions and configuration", content)


def trained_bleu(record: RunRecord) -> float | None:
    """BLEU of the translation model that the run trained, if it did."""
    trained = record.find(NmtRecord)
    return trained.training.bleu if trained else None


def _cells(correlations: Sequence[Correlation]) -> list[str]:
    return [_correlation(value) for c in correlations for value in (c.pearson, c.spearman)]


def _correlation(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1f}"


def _cell_correlation(counts: Array) -> str:
    """Pearson's r of two scores from their counts over equal cells."""
    x, y = np.indices(counts.shape)
    if np.count_nonzero(counts.sum(0)) < 2 or np.count_nonzero(counts.sum(1)) < 2:
        return "undefined, one score is constant"
    covariance = np.cov(x.ravel(), y.ravel(), fweights=counts.ravel())
    return f"{covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]):.2f}"
