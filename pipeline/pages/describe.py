"""Descriptions of a run, for the report, the summary and the cards."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from paraloom.beam_jobs.transforms.exclusion import RULES, excluded
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.scorers import SCORERS
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.judging.describe import deciles_in_words, labelled_in_words
from paraloom.pipeline.run.records import (
    AutoSelectRecord,
    Correlation,
    DecileTrial,
    EvaluateRecord,
    LoopRecord,
    PairsRecord,
    RunRecord,
    ScorerRecord,
)
from paraloom.pipeline.stages.selection.exclude import ExcludeRecord

NEAR_COPIES = 0.8
"""`near_copies` gives advice if the median unigram F1 of the corpus is above this value."""

_CLEANED = {
    "entities": "HTML entities",
    "whitespace": "line feeds, tabs and separators",
    "nfc": "characters not in NFC",
}
_PER_SOURCE = {
    "best": "the best translation of each source",
    "diverse": "translations of a source that differ from each other",
}


def score(name: str, own: Mapping[str, ScorerRecord] | None = None) -> ScorerRecord:
    """Return the description of a score. `own` contains scorers that are not built in."""
    if name == "translation_score":
        logarithm = "log p(translation | source) per subword of the translation (natural logarithm)"
        return ScorerRecord(meaning=logarithm, unit="log p per subword")
    if own and name in own:
        return own[name]
    if name in SCORERS:
        return ScorerRecord.model_validate(SCORERS[name], from_attributes=True)
    return ScorerRecord(meaning=f"score of the scorer {name}", unit="score")


def decoding(nmt: NmtOptions) -> str:
    """Describe how translations are decoded.

    >>> decoding(NmtOptions(beam=12)), decoding(NmtOptions(sampling={"top_k": 5}))
    ('beam 12', 'sampling (top_k 5, temperature 1)')
    >>> decoding(NmtOptions(beam=12, no_repeat_ngram=3, repetition_penalty=1.2))
    'beam 12, no repeated 3-gram of subwords, repetition penalty 1.2'
    """
    how = [f"beam {nmt.beam}"]
    if nmt.sampling:
        how = [f"sampling ({', '.join(f'{name} {of:g}' for name, of in nmt.sampling)})"]
    how += [f"no repeated {nmt.no_repeat_ngram}-gram of subwords"] * (nmt.no_repeat_ngram > 0)
    how += [f"repetition penalty {nmt.repetition_penalty:g}"] * (nmt.repetition_penalty > 1)
    return ", ".join(how)


def cleaned(record: RunRecord) -> str:
    """Describe how many pairs each kind of cleaning changed, or return "" without cleaning.

    >>> cleaned(RunRecord(stages={"ingest": PairsRecord(cleaned={"entities": 1234, "nfc": 0})}))
    'HTML entities in 1,234, characters not in NFC in 0'
    """
    kinds = (record.find(PairsRecord, "ingest") or PairsRecord()).cleaned
    return ", ".join(f"{_CLEANED.get(kind, kind)} in {rows:,}" for kind, rows in kinds.items())


def readable(name: str) -> str:
    """Return a name with spaces instead of underscores."""
    return name.replace("_", " ")


def percent(part: int, whole: int) -> str:
    """Format a share as a percentage.

    >>> percent(1, 3), percent(1, 1000)
    ('33%', '0.1%')
    """
    share = 100 * part / max(whole, 1)
    return f"{share:.0f}%" if share >= 1 or not part else f"{share:.1g}%"


def correlation(value: float | None) -> str:
    """Format a correlation × 100 with one decimal place, and None as `undefined`."""
    return "undefined" if value is None else f"{value:.1f}"


def selection_in_words(select: SelectOptions, code: Callable[[str], str] = "`{}`".format) -> str:
    """Describe the conditions that a selected pair meets. `code` formats names.

    >>> chosen = SelectOptions(by="word_order", deciles=[1, 2, 4], where=["unigram_f1 <= 0.8"])
    >>> selection_in_words(chosen.replace(per_source="all", max_tokens=None))
    'deciles 1–2 and 4 of `word_order`, `unigram_f1 <= 0.8`'
    """
    parts = []
    if select.deciles is not None:
        parts.append(f"{deciles_in_words(select.deciles)} of {code(select.by)}")
    parts += map(code, select.where)
    if select.max_tokens is not None:
        parts.append(f"at most {select.max_tokens} tokens a side")
    if select.per_source != "all":
        parts.append(_PER_SOURCE[select.per_source])
    if select.per_generator is not None:
        parts.append(f"at most {select.per_generator:.0%} of the pairs from one generator")
    if select.size is not None:
        parts.append(f"{select.size:,} pairs drawn at random")
    return ", ".join(parts) or "every pair"


def near_copies(corpus: PairsRecord | None, config: Config) -> str:
    """Return advice if the sides of most pairs differ little, or ""."""
    if corpus is None or (corpus.unigram_f1 or 0) <= NEAR_COPIES:
        return ""
    remedy = "add 'content_overlap <= 0.8' to select.where"
    if "content_overlap" not in config.score.scorers:
        remedy += ", and content_overlap to score.scorers"
    if any("content_overlap" in condition for condition in config.select.where):
        remedy = "lower the bound of content_overlap in select.where"
    return (
        "The sides of most pairs differ little: the median unigram F1 of the corpus is "
        f"{corpus.unigram_f1:.2f}; for pairs that differ more, {remedy}"
    )


def excluded_rows(record: RunRecord) -> list[tuple[str, int, list[int]]]:
    """List each data set's name, number of sentences, and number of excluded rows by rule."""
    data_sets = (record.find(ExcludeRecord) or ExcludeRecord()).data_sets
    rejected = (record.find(PairsRecord, "select") or PairsRecord()).rejected
    return [
        (name, size, [rejected.get(excluded(name, rule), 0) for rule in RULES])
        for name, size in data_sets.items()
    ]


def verdict(record: RunRecord) -> str:
    """Describe the best round and the scores of all rounds, or return "" without rounds."""
    loop = record.find(LoopRecord)
    if loop is None:
        return ""
    others = [(n, of) for n, of in enumerate(loop.labelled, 1) if n != loop.best]
    scores = ", ".join(f"{of:.2f} in round {number}" for number, of in others)
    best, all_rounds = loop.labelled[loop.best - 1], len(loop.labelled)
    over = f"mean over {loop.data_sets} data sets" if loop.data_sets > 1 else "one data set"
    return (
        f"Round {loop.best} of {all_rounds} is best: {best:.2f} on the labelled pairs, "
        f"against {scores} (Pearson × 100, {over} with {labelled_in_words(best, loop.pairs)})"
    )


def selection_lines(result: AutoSelectRecord) -> list[str]:
    """Describe the chosen trial, the second best trial, and the trial with all deciles."""

    def words(of: DecileTrial) -> str:
        return f"{trial_name(of)}: {mean_deviation(of.scores)} with {of.pairs:,} pairs"

    others = sorted(result.trials, key=lambda trial: -trial.mean)
    sure = f" ({labelled_in_words(result.chosen.mean, result.labelled)})" * bool(result.labelled)
    lines = [f"Chosen: {words(result.chosen)}{sure}"]
    lines += [f"Second best: {words(of)}" for of in others if of != result.chosen][:1]
    return lines + [f"All pairs: {words(of)}" for of in others if len(of.deciles) == 10]


def trial_name(trial: DecileTrial) -> str:
    """Describe the score and the deciles of a trial, as in `trigram overlap, deciles 0–4`."""
    return f"{readable(trial.scorer)}, {deciles_in_words(trial.deciles)}"


def mean_deviation(scores: Sequence[float] | None) -> str:
    """Format the mean and, of several scores, the standard deviation. Return "" without scores."""
    if not scores:
        return ""
    if len(scores) == 1:
        return f"{scores[0]:.1f}"
    return f"{fmean(scores):.1f} ± {stdev(scores):.1f}"


class EvaluationTable(NamedTuple):
    """The correlations × 100 of every round and model, as text."""

    models: list[str]
    columns: list[str]
    rows: list[tuple[str, list[str], bool]]  # first cell, further cells, whether cells are means
    missing: list[str]  # data sets that were not found


def evaluation_table(evaluated: Sequence[tuple[str, EvaluateRecord]]) -> EvaluationTable:
    """Return a table of evaluations. The name of an evaluation is its round, or ""."""
    results = [(name, of.results, model) for name, of in evaluated for model in of.results.models]
    models = list(dict.fromkeys(model for _, _, model in results))
    columns = ["data set", "pairs"]
    for name, _, model in results:
        prefix = f"{name} " * bool(name) + f"{model} " * (len(models) > 1)
        columns += [f"{prefix}Pearson", f"{prefix}Spearman"]

    def cells(found: Iterable[Correlation]) -> list[str]:
        return [correlation(value) for each in found for value in (each.pearson, each.spearman)]

    rows, missing = [], []
    for group, content in evaluated[0][1].results.groups.items():
        for test, data in content.data_sets.items():
            of_set = (of.groups[group].data_sets[test].models[model] for _, of, model in results)
            rows.append((f"{group} {test}", [f"{data.pairs:,}", *cells(of_set)], False))
        if content.mean:
            of_group = ((of.groups[group].mean or {})[model] for _, of, model in results)
            rows.append((f"{group} mean", ["", *cells(of_group)], True))
        if content.missing:
            missing.append(f"{group} {', '.join(content.missing)}")
    return EvaluationTable(models, columns, rows, missing)
