"""statistics: all pairs beside the corpus."""

from pathlib import Path
from typing import Any

from paraloom.beam_jobs.io.shards import content_key
from paraloom.models.errors import reading
from paraloom.models.files import digest
from paraloom.pipeline import statistics
from paraloom.pipeline.config.options import Config, StatisticsOptions
from paraloom.pipeline.names import RANKED
from paraloom.pipeline.notices import notify, of_parser
from paraloom.pipeline.records import PairsRecord, StageRecord
from paraloom.pipeline.stage import Run, Stage


class StatisticsRecord(StageRecord, stage="statistics"):
    """All pairs beside the corpus."""

    results: statistics.Statistics


def fingerprint(run: Run) -> Any:
    """The parser, and the language of tokens."""
    spacy = _options(run.config).spacy
    parser = digest(spacy) if spacy and Path(spacy).exists() else spacy
    return run.with_language(parser)


def make(run: Run, key: str) -> StatisticsRecord:
    """Compute the statistics; all pairs have the scores of the best round too."""
    all_pairs = run.at(run.record(PairsRecord, "select").round or 0)
    corpora = {
        "all pairs": all_pairs.verified_files(RANKED),
        "corpus": run.verified_files("select"),
    }
    results = statistics.describe(
        corpora,
        run.arguments,
        spacy=_options(run.config).spacy,
        idf=run.config.score.idf,
        languages=dict.fromkeys(corpora, run.language),
        folder=run.folder("statistics"),
    )
    return StatisticsRecord(results=results, digest=content_key(results.json_values()))


def check(config: Config) -> None:
    """Check that the parser can be loaded."""
    from paraloom.models.text.parses import Parser

    if spacy := _options(config).spacy:
        with reading("statistics.spacy"):
            parser = Parser(spacy)
        notify(of_parser("statistics.spacy", parser.language, config.language))


def _options(config: Config) -> StatisticsOptions:
    assert config.statistics is not None
    return config.statistics


STAGE = Stage(
    name="statistics",
    depends_on=(RANKED, "select"),
    version=statistics.VERSION,
    fingerprint=fingerprint,
    make=make,
    enabled=lambda config: config.statistics is not None,
    check=check,
)
