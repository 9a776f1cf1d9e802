"""What `input.where` and `input.unique` save: rows, tokens, and hours of back-translation."""

from collections.abc import Iterator
from dataclasses import dataclass

from paraloom.pipeline.records import BackTranslateRecord, PairsRecord, RunRecord


@dataclass(frozen=True, slots=True)
class Saving:
    """What one key of the configuration saves: rows that were not translated."""

    key: str
    rows: int
    tokens: int  # Moses tokens of their texts
    hours: float | None
    """Worker hours that their translation would take, at the measured seconds per translated
    source; None without one."""


def savings(record: RunRecord) -> list[Saving]:
    """What each key saves of each translation; none if neither is set."""
    ingest = record.find(PairsRecord, "ingest")
    sources = ingest.rows_out if ingest else 0
    jobs: dict[str, tuple[BackTranslateRecord, float | None]] = {}
    for name in ("pivot", "back_translate"):
        if found := record.find(BackTranslateRecord, name):
            jobs[name] = found, seconds_per_source(found, sources)
            sources = found.rows_out
    seconds = [of_source for _, of_source in jobs.values()]
    every = None if not seconds or None in seconds else sum(filter(None, seconds))
    savings = list(_savings(ingest, every))
    for name, (job, of_source) in jobs.items():
        savings += _savings(job, of_source, f" ({name})" if len(jobs) > 1 else "")
    return savings


def seconds_per_source(translated: BackTranslateRecord, sources: int) -> float | None:
    """Worker seconds for each of the `sources` read that was translated; None if none was."""
    repeats = sum(saved.rows for saved in translated.saved.values())
    return translated.worker_seconds / (sources - repeats) if sources > repeats else None


def hours_in_words(hours: float | None) -> str:
    """Hours with two digits, more if there are few.

    >>> [hours_in_words(hours) for hours in (1234.5, 2.345, 0.001234, None)]
    ['1,234', '2.3', '0.0012', '']
    """
    if hours is None:
        return ""
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.2g}"


def _savings(
    stage: PairsRecord | None, seconds: float | None, suffix: str = ""
) -> Iterator[Saving]:
    for key, saved in (stage.saved if stage else {}).items():
        hours = None if seconds is None else saved.rows * seconds / 3600
        yield Saving(key + suffix, saved.rows, saved.tokens, hours)
