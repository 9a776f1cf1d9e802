"""Scores, selection and training in words, for the report, the summary and the data card."""

from collections.abc import Callable, Mapping

from paraloom.models.scorers import SCORERS
from paraloom.pipeline.judging.describe import deciles_in_words
from paraloom.pipeline.judging.record import JudgedRecord
from paraloom.pipeline.records import (
    AutoSelectRecord,
    NmtSection,
    RunRecord,
    ScorerRecord,
    SelectSection,
    TrainingRecord,
)
from paraloom.pipeline.stage import stage_path

_PER_SOURCE = {
    "best": "the best translation of each source",
    "diverse": "translations of a source that differ from each other",
}


def score(name: str, own: Mapping[str, ScorerRecord] | None = None) -> ScorerRecord:
    """The description of a score; `own` has the run's scorers that are not Paraloom's.

    >>> score("paragram_similarity").unit
    'cosine'
    """
    if name == "translation_score":
        logarithm = "log p(translation | source) divided by its subwords (natural logarithm)"
        return ScorerRecord(meaning=logarithm, unit="log p per subword")
    if own and name in own:
        return own[name]
    if name in SCORERS:
        return ScorerRecord(meaning=SCORERS[name].meaning, unit=SCORERS[name].unit)
    return ScorerRecord(meaning=f"score of the scorer {name}", unit="score")


def decoding(nmt: NmtSection) -> str:
    """How translations are found, in words.

    >>> decoding(NmtSection(beam=12)), decoding(NmtSection(beam=12, sampling={"top_k": 10}))
    ('beam 12', 'sampling (top_k 10)')
    """
    if not nmt.sampling:
        return f"beam {nmt.beam}"
    return f"sampling ({', '.join(f'{name} {value:g}' for name, value in nmt.sampling.items())})"


def readable(name: str) -> str:
    """A name as words of running text: `trigram_overlap` → `trigram overlap`."""
    return name.replace("_", " ")


def count(number: int) -> str:
    """A whole number with separators.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,}"


def percent(part: int, whole: int) -> str:
    """A share in words.

    >>> percent(1, 3), percent(1, 1000)
    ('33%', '0.1%')
    """
    share = 100 * part / max(whole, 1)
    return f"{share:.0f}%" if share >= 1 or not part else f"{share:.1g}%"


def correlation(value: float | None) -> str:
    """A correlation × 100.

    >>> correlation(76.54), correlation(None)
    ('76.5', 'undefined')
    """
    return "undefined" if value is None else f"{value:.1f}"


def selection_in_words(select: SelectSection, code: Callable[[str], str] = "`{}`".format) -> str:
    """The conditions on a pair of the corpus; `code` makes names and conditions code.

    >>> chosen = SelectSection(by="word_order", deciles=[1, 2, 4], where=["unigram_f1 <= 0.8"])
    >>> selection_in_words(chosen)
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
    if select.size is not None:
        parts.append(f"{select.size:,} of them drawn at random")
    return ", ".join(parts) or "every pair"


def resolve_auto(record: RunRecord, number: int = 0) -> SelectSection:
    """The section `select` of the configuration as it takes effect (in a round): with the result of
    `by: auto` or `by: judged`, and without a choice among translations of a source where there is
    one."""
    select = record.config.select
    found = record.find(AutoSelectRecord, stage_path("choice", number))
    judged = record.find(JudgedRecord, stage_path("judged", number))
    if record.config.nmt.candidates == 1:
        select = select.model_copy(update={"per_source": "all"})
    if select.by == "auto" and found:
        chosen = {"by": found.chosen.scorer, "deciles": list(found.chosen.deciles)}
        return select.model_copy(update=chosen)
    if select.by == "judged" and judged:
        cut = {"by": judged.chosen.score, "deciles": judged.chosen.deciles}
        return select.model_copy(update=cut)
    return select


def chosen_epoch(record: RunRecord) -> str | None:
    """What development data chose, in words; None if the encoder was trained without them."""
    trained = record.find(TrainingRecord, "embeddings")
    found = trained.training if trained else {}
    if "best_epoch" not in found:
        return None
    data = found.get("development_data", "development data")
    return (
        f"of epoch {found['best_epoch']}, the best of {found['epochs']}: "
        f"{found['development']:.2f} ({data})"
    )
