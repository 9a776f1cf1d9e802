"""What `input.where` and `input.unique` save: rows, tokens, and hours of back-translation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipeline.records import BackTranslateRecord, PairsRecord, RunRecord


class Saving(NamedTuple):
    """What one key of the configuration saves.

    Attributes:
        key: of the configuration.
        rows: rows that were not translated.
        tokens: Moses tokens of their texts.
        hours: worker hours that their translation would take, at the seconds per translated row
            that were measured; None without a translated row.
    """

    key: str
    rows: int
    tokens: int
    hours: float | None


def savings(record: RunRecord) -> list[Saving]:
    """What each key saves of each translation; none if neither is set."""
    jobs = {
        name: found
        for name in ("pivot", "back_translate")
        if (found := record.find(BackTranslateRecord, name))
    }
    seconds = [seconds_per_row(job) for job in jobs.values()]
    every = None if not seconds or None in seconds else sum(filter(None, seconds))
    savings = list(_savings(record.find(PairsRecord, "ingest"), every))
    for name, job in jobs.items():
        savings += _savings(job, seconds_per_row(job), f" ({name})" if len(jobs) > 1 else "")
    return savings


def seconds_per_row(translated: BackTranslateRecord) -> float | None:
    """Worker seconds for each row that was really translated; None if there is none."""
    repeats = sum(saved.rows for saved in translated.saved.values())
    rows = translated.rows_in - repeats
    return translated.worker_seconds / rows if rows else None


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
