"""The sections of the report: each says in its text and captions what there is to see."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import numpy as np
import yaml

from pipeline.report import plots
from pipeline.report.auto_select import Choice, mean, named
from pipeline.report.describe import deciles_in_words, score, selection, spoken
from pipeline.report.differences import marked
from pipeline.report.final_view import rounds, verdict
from pipeline.report.page import Row, Section, figure, fold, table
from pipeline.report.report_data import SHOWN_DECILES, Histogram, Pair, Scores, regions
from pipeline.report.svg import shown

Accounts = dict[str, dict[str, Any]]
"""What the manifest holds of each finished stage."""


def headline(accounts: Accounts) -> list[tuple[str, str]]:
    """The figures that matter most, of those that there are."""
    said = []
    if "ingest" in accounts:
        said.append(("rows read", f"{accounts['ingest']['rows_in']:,}"))
    if "corpus" in accounts:
        rows = accounts["corpus"]["rows_out"]
        said.append(("pairs in the corpus", f"{rows:,}"))
        said.append(("of the rows read", plots.percent(rows, accounts["ingest"]["rows_in"])))
    if "nmt" in accounts:
        said.append(("BLEU of the translation", f"{accounts['nmt']['training']['bleu']:.1f}"))
    if "evaluate" in accounts:
        groups = accounts["evaluate"]["results"]["groups"]
        means = [(name, group["mean"]) for name, group in groups.items() if "mean" in group]
        for name, mean in means[-1:]:
            (value, *_) = mean.values()
            said.append((f"{name}, mean Pearson × 100", _correlation(value["pearson"])))
    return said


def subtitle(config: dict[str, Any], inputs: Sequence[dict[str, Any]]) -> str:
    """What went in, in a line."""
    files = ", ".join(PurePath(i["path"]).name for i in inputs[:3])
    files += f" and {len(inputs) - 3} more" if len(inputs) > 3 else ""
    nmt = config["nmt"]
    parts = [files, f"{nmt['engine']}, beam {nmt['beam']}", f"seed {config['seed']}"]
    return " · ".join(part for part in parts if part)


def rows_section(accounts: Accounts) -> Section | None:
    """From the input to the corpus, with what was lost where and why."""
    steps = [
        plots.Step(name, a["rows_in"], a["rows_out"], a["rejected"])
        for name, a in accounts.items()
        if "rows_in" in a
    ]
    if not steps:
        return None
    caption = (
        'A bar is as wide as the rows that come in. <span class="key corpus"></span> goes on to '
        'the next stage; <span class="key lost"></span> ends there, for the reason beside it. '
        "Every row is in one of the two: in = on + rejected."
    )
    drawings = "".join(
        f'<div class="{kind}">{plots.flow(steps, name=f"flow-{kind}", width=width)}</div>'
        for kind, width in (("wide", 700), ("narrow", 340))
    )
    return Section("rows", "The way of the rows", figure(drawings, caption, kind="flow"))


def selection_section(config: dict[str, Any], accounts: Accounts, scores: Scores) -> Section:
    """Meaning against wording, and what of it was selected."""
    words = escape(selection(config["select"]))
    text = f"<p>Selected: {_code(words)}.</p>"
    if scores.density is None:
        return Section("selection", "The selection", text + "<p>One score has no picture here.</p>")
    data = scores.density
    region = regions(config["select"], accounts["bucket"]["deciles"])
    framed = [name for name in region if name in (data.x, data.y)]
    rest = [spoken(name) for name in region if name not in framed]
    outlined = (
        ' What was asked of the two stands in the <span class="key region"></span> frame.'
        if framed
        else ""
    )
    if rest:
        outlined += f" What was asked of {' and '.join(rest)} cannot be seen here."
    correlation = _correlation_of(data.pairs)
    see = (
        "Further up, the sides are closer in meaning (or likelier); further right, closer in "
        "wording. Good paraphrases stand high and not at the right edge, where the sides are "
        f"nearly copies.{outlined} Pearson's r over the cells: {correlation}."
        if data.x in ("trigram_overlap", "unigram_f1")
        else f"How the two scores go together.{outlined} Pearson's r over the cells: {correlation}."
    )
    drawing = plots.density(data, data.pairs, region, of="all pairs", name="density-pairs")
    figures = figure(drawing, see, heading=f"All {int(data.pairs.sum()):,} pairs")
    if "corpus" in accounts:
        drawing = plots.density(data, data.corpus, region, of="corpus", name="density-corpus")
        caption = (
            "The same axes and shades, only the pairs of the corpus: what further limits, repeats "
            "and the draw have left of the selected region."
        )
        heading = f"The {int(data.corpus.sum()):,} of the corpus"
        figures += figure(drawing, caption, heading=heading)
    return Section("selection", "The selection", f'{text}<div class="plots">{figures}</div>')


def choice_section(account: dict[str, Any], number: int) -> Section:
    """What the automatic choice of deciles rests on, of a round; 0 where there is but one."""
    choice = Choice.from_json(account)
    first, *further = map(escape, choice.lines())
    text = (
        f"<p><b>{first}</b>; {'; '.join(further)}. Figures are Pearson × 100 on the labelled "
        "pairs: mean over the seeds ± standard deviation, differences ± standard error.</p>"
        f"<p>A small encoder was trained on {choice.sample:,} pairs of every decile. Points are "
        "means over the seeds; the lines through them reach from the lowest seed to the highest. "
        'The <span class="key pairs"></span> band is as many pairs drawn at random: deciles that '
        "stand above it are worth more than pairs taken blindly. "
        '<span class="key chosen"></span> was chosen.</p>'
    )
    figures = ""
    for scorer, deciles in choice.scores.items():
        drawing = plots.curve(choice, scorer, name=f"curve-{scorer}")
        best = max(deciles, key=lambda decile: np.mean(deciles[decile]))
        worst = min(deciles, key=lambda decile: np.mean(deciles[decile]))
        caption = f"Best is decile {best}, {mean(deciles[best])}; worst decile {worst}, "
        figures += figure(drawing, f"{caption}{mean(deciles[worst])}.", heading=spoken(scorer))
    content = f'{text}<div class="plots">{figures}</div>{_deciles_table(choice)}'
    heading = f"The choice of deciles, round {number}" if number else "The choice of deciles"
    return Section(
        f"choice-{number}" if number else "choice", heading, content + _runs_table(choice)
    )


def _deciles_table(choice: Choice) -> str:
    """Every decile of every scorer, as numbers."""
    rows = [
        Row(
            str(k), [mean(deciles[k]) if k in deciles else "" for deciles in choice.scores.values()]
        )
        for k in range(10)
    ]
    rows.append(Row("random", [mean(choice.random)] * len(choice.scores), mean=True))
    columns = ["decile", *map(spoken, choice.scores)]
    caption = f"Trained on {choice.sample:,} pairs of one decile"
    return fold("Every decile", table(columns, rows, caption=caption))


def _runs_table(choice: Choice) -> str:
    """The runs that grew from the best deciles."""
    rows = [
        Row(
            named(run),
            [f"{run.rows:,}", f"{run.pairs:,}", mean(run.scores)],
            mean=run == choice.chosen,
        )
        for runs in choice.runs.values()
        for run in runs
    ]
    columns = ["run of deciles", "pairs it has", "trained on", "Pearson × 100"]
    return fold("Runs of deciles", table(columns, rows, caption="Trained on neighbouring deciles"))


def histogram_section(config: dict[str, Any], accounts: Accounts, scores: Scores) -> Section:
    """Every score's distribution."""
    text = (
        '<p><span class="key pairs"></span> all scored pairs, <span class="key corpus"></span> '
        "those in the corpus. Dashed lines are the bounds between deciles, ten parts of equally "
        "many pairs, numbered on the ruler above. Values that were asked for stand on <span "
        'class="key chosen"></span>.</p>'
    )
    region = regions(config["select"], accounts["bucket"]["deciles"])
    figures = ""
    for name, data in scores.histograms.items():
        drawing = plots.histogram(name, data, region.get(name, []), name=f"histogram-{name}")
        figures += figure(drawing, _histogram_caption(name, data), heading=spoken(name))
    return Section("scores", "The scores", f'{text}<div class="plots">{figures}</div>')


def _histogram_caption(name: str, data: Histogram) -> str:
    said = f"{escape(_sentence(score(name).meaning))}."
    if len(data.bounds) == 9:
        low, high = data.bounds[1], data.bounds[7]
        said += f" Six tenths of the pairs, deciles 2 to 7, lie from {shown(low)} to {shown(high)}."
    ends = [float(data.edges[0]), *data.bounds, float(data.edges[-1])]
    if any(a == b for a, b in pairwise(ends)):
        said += " Deciles that begin and end at one frequent value have no width on the ruler."
    if data.beyond:
        said += f" The outermost bars count what lies beyond the axis too: {data.beyond:,} in all."
    return said


def pairs_section(config: dict[str, Any], scores: Scores) -> Section:
    """Pairs to read, from the lowest, a middle and the highest decile of each score."""
    text = (
        "<p>Drawn at random (the same for the same seed). <mark>Marked</mark> words are those that "
        "the other side does not have in that place. Above each pair stands its source.</p>"
    )
    first = config["select"]["by"]
    language = config["input"]["source_language"]
    folds = ""
    for name in sorted(scores.pairs, key=lambda score: score != first):
        groups = ""
        for place, decile in SHOWN_DECILES.items():
            pairs = "".join(_pair(p, language) for p in scores.pairs[name].get(decile, []))
            if pairs:
                groups += f"<div><h4>{place} decile ({decile})</h4>{pairs}</div>"
        content = f'<div class="deciles">{groups}</div>'
        folds += fold(spoken(name), content, opened=name == first)
    return Section("pairs", "Pairs to look at", text + folds)


def _pair(pair: Pair, language: str) -> str:
    reference, translation = marked(pair.reference, pair.translation)
    return (
        f'<div class="pair"><p class="about" lang="{escape(language)}">{escape(pair.source)}</p>'
        f"<p>{reference}</p><p>{translation}</p>"
        f'<p class="about">{pair.value:.3f} · {escape(pair.id)}</p></div>'
    )


def rounds_section(record: dict[str, Any]) -> Section:
    """What the rounds came to, and which one the result is."""
    found = rounds(record)
    rows = []
    for each in found:
        by = spoken(each.by)
        if each.deciles is not None:
            by += f", {deciles_in_words(each.deciles)}"
        kept = ", kept" if each.kept else ""
        cells = [f"{each.labelled:.2f}", f"{each.pairs:,}", by]
        rows.append(Row(f"round {each.number}{kept}", cells, mean=each.kept))
    text = (
        f"<p><b>{escape(verdict(record))}.</b> From the second round on pairs are ranked by how "
        "alike the encoder of the round before finds their sides. What the other sections show is "
        "the kept round.</p>"
    )
    columns = ["", "Pearson × 100", "pairs", "selected by"]
    caption = "Encoders of the rounds on the labelled pairs"
    return Section("rounds", "The rounds", text + table(columns, rows, caption=caption))


def evaluation_section(rounds: Sequence[tuple[str, dict[str, Any]]]) -> Section:
    """Correlations on STS and SICK.

    Args:
        rounds: name of the round ("" if there is but one) and its results, as
            `models.embeddings.applications.evaluation.Report.json` gives them.
    """
    judged = [(name, model, r) for name, r in rounds for model in r["models"]]
    columns = ["data set", "pairs"]
    several = len({model for _, model, _ in judged}) > 1
    for name, model, _ in judged:
        whose = " ".join([*([name] if name else []), *([model] if several else []), ""])
        columns += [f"{whose}Pearson", f"{whose}Spearman"]
    rows = []
    lacking = []
    for group, content in rounds[0][1]["groups"].items():
        for test, found in content["data_sets"].items():
            cells = [f"{found['pairs']:,}"]
            for _, model, results in judged:
                cells += _cells(results["groups"][group]["data_sets"][test]["models"][model])
            rows.append(Row(f"{group} {test}", cells))
        if "mean" in content:
            cells = [""]
            for _, model, results in judged:
                cells += _cells(results["groups"][group]["mean"][model])
            rows.append(Row(f"{group} mean", cells, mean=True))
        if content["missing"]:
            lacking.append(f"{group} {', '.join(content['missing'])}")
    models = ", ".join(dict.fromkeys(model for _, model, _ in judged))
    text = (
        f"<p>How well the cosines of the trained encoder ({escape(models)}) agree with people's "
        "judgements of similarity: 100 is full agreement, 0 none. Means weigh every data set of a "
        "year alike.</p>"
    )
    if lacking:
        text += f'<p class="quiet">Not there: {escape("; ".join(lacking))}.</p>'
    return Section(
        "sts", "Sentence similarity", text + table(columns, rows, caption="Correlation × 100")
    )


def stages_section(accounts: Accounts) -> Section:
    """Time, rates and memory of the stages; BLEU of a model trained here."""
    columns = ["stage", "rows in", "rows on", "seconds", "rows/s", "worker seconds"]
    with_memory = any("peak_memory" in a for a in accounts.values())
    if with_memory:
        columns.append("peak memory of a process")
    rows = []
    for name, account in accounts.items():
        seconds = account["seconds"]
        cells = ["", "", f"{seconds:,.1f}", "", ""]
        if "rows_in" in account and "round" not in account:  # a copied corpus has no rate
            rate = account["rows_in"] / max(seconds, 1e-9)
            cells = [f"{account['rows_in']:,}", f"{account['rows_out']:,}", f"{seconds:,.1f}"]
            cells += [f"{rate:,.0f}", f"{account['worker_seconds']:,.1f}"]
        if with_memory:
            peak = account.get("peak_memory")
            cells.append(f"{peak / 2**20:,.0f} MiB" if peak else "")
        rows.append(Row(spoken(name), cells))
    text = (
        "<p>Seconds are those on the clock, from a stage's start to its end; worker seconds are "
        "those its workers spent on rows, added up. What lies between is start-up."
    )
    if with_memory:
        text += " Memory is the most that any one process of a stage held, workers and launcher."
    text += "</p>"
    trained = accounts.get("nmt", {}).get("training", {})
    if "bleu" in trained:
        text += f"<p>The translation model trained here has BLEU {trained['bleu']:.1f} on pairs "
        text += "held out from its training.</p>"
    caption = "Seconds and rates of the stages as they last ran"
    return Section("stages", "The stages", text + table(columns, rows, caption=caption))


def record_section(record: dict[str, Any]) -> Section:
    """Inputs, versions, the whole configuration."""
    content = ""
    if record.get("inputs"):
        rows = [
            Row(PurePath(i["path"]).name, [f"{i['bytes']:,}", i["sha256"]])
            for i in record["inputs"]
        ]
        columns = ["file", "bytes", "SHA-256"]
        content += fold("Inputs", table(columns, rows, caption="Inputs", numbers=False))
    rows = [Row(name, [version]) for name, version in record["versions"].items()]
    versions = table(["library", "version"], rows, caption="Versions", numbers=False)
    content += fold("Versions", versions)
    config = yaml.safe_dump(record["config"], sort_keys=False, allow_unicode=True)
    content += fold("Configuration", f'<pre tabindex="0">{escape(config)}</pre>')
    return Section("record", "What it was made from", content)


def _cells(correlation: dict[str, float | None]) -> list[str]:
    return [_correlation(correlation[kind]) for kind in ("pearson", "spearman")]


def _correlation(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.1f}"


def _correlation_of(counts: np.ndarray) -> str:
    """Pearson's r of two scores from their counts over equal cells."""
    x, y = np.indices(counts.shape)
    if np.count_nonzero(counts.sum(0)) < 2 or np.count_nonzero(counts.sum(1)) < 2:
        return "undefined, one score is constant"
    covariance = np.cov(x.ravel(), y.ravel(), fweights=counts.ravel())
    return f"{covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]):.2f}"


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _code(words: str) -> str:
    """Markdown's code spans as HTML."""
    parts = words.split("`")
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(parts))
