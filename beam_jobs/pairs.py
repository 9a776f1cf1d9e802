"""Transforms for your own Beam pipelines: back-translation, scores and exact deciles.

Pairs are Beam rows with a schema. Each transform adds columns to them. It also returns the rejected
rows with a `reason`.

>>> with beam.Pipeline(runner="FnApiRunner") as pipeline:
...     pairs = pipeline | beam.Create([
...         beam.Row(id="1", reference="a cat sat", translation="a cat was there"),
...         beam.Row(id="2", reference="a dog", translation="a dog"),
...     ])
...     scored = pairs | ScorePairs(["unigram_f1"])
...     deciles = scored.pairs | ExactDeciles(["unigram_f1"])
...     _ = deciles.pairs | beam.Map(lambda row: print(row.id, row.unigram_f1_decile))
...     _ = scored.rejected | "Lost" >> beam.Map(lambda row: print(row.id, row.reason))
1 4
2 9
"""

# Beam reads the annotations of `process_batch`, so they must not be strings.
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.metrics import Metrics
from apache_beam.typehints import Optional
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import named_fields_from_element_type
from apache_beam.utils.shared import Shared

from paraloom.beam_jobs.bucket import deciles_of, score_columns, starts_of_deciles
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import NAMESPACE
from paraloom.beam_jobs.score import Scoring, score_table
from paraloom.beam_jobs.transforms.order_statistics import OrderStatistics, Targets
from paraloom.beam_jobs.transforms.translations import (
    BACK,
    TranslatorFactory,
    count,
    drawing_seed,
    with_translations,
)
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.scorers import PairScorer

_TYPES = {pa.string(): str, pa.float32(): np.float32, pa.int16(): np.int16, pa.int8(): np.int8}

Fields = list[tuple[str, Any]]


class PairsAndRejects(NamedTuple):
    """The output of a transform: the accepted rows, and the rejected rows with a `reason`."""

    pairs: beam.PCollection
    rejected: beam.PCollection


class BackTranslate(beam.PTransform):
    """Translates `source`: adds `translation`, `translation_score` and `translation_subwords`.

    `translated = pairs | BackTranslate("models/cs-en")`. Rows need the columns id, source and
    reference, and may have more columns. With `NmtOptions(candidates=N)`, each row becomes N rows
    with a `candidate` number. The Beam counters are the same as in the stage `back_translate`.

    Args:
        model: a folder that all workers can read, or a name on the Hugging Face Hub.
        languages: required for multilingual models.
        accelerator: Beam resource hint. If it requests an NVIDIA GPU, workers without a GPU fail.
        seed: seed for random translations, which also depend on how Beam divides rows into batches.
    """

    def __init__(
        self,
        model: str,
        options: NmtOptions | None = None,
        *,
        languages: Languages | None = None,
        accelerator: str | None = None,
        seed: int = 1,
    ):
        super().__init__()
        self.options, self.accelerator, self.seed = options or NmtOptions(), accelerator, seed
        self.factory = TranslatorFactory(model, self.options, languages)

    def expand(self, pairs: beam.PCollection) -> Any:
        """Translate batches of rows."""
        factory, accelerator, seed = self.factory, self.accelerator, self.seed
        candidates = self.options.candidates
        added = list(schema.translated(candidates=candidates > 1))[len(schema.INGEST) :]

        def divide(translator: Any, table: pa.Table) -> tuple[pa.Table, pa.Table]:
            drawn = drawing_seed(seed, table["source"].to_pylist())
            translations, counts = translator.translate(table["source"], seed=drawn)
            count(counts)
            return with_translations(table, translations, candidates, BACK)

        loading = partial(factory.open, None, accelerator)
        return _divided(pairs, loading, divide, added, accelerator)


class ScorePairs(beam.PTransform):
    """Adds scores of `translation` against `reference`, and the number of tokens in each text.

    `scored = translated.pairs | ScorePairs(["trigram_overlap", "unigram_f1"])`

    Args:
        scorers: names in `paraloom.models.scorers.SCORERS` or in the option `sources`.
        options: arguments of `Scoring`, such as `language`, `resources` (a dict from names to paths
            that all workers can read), or `sources` for your own scorers. See `docs/scorers.md`.
    """

    def __init__(self, scorers: Sequence[str], **options: Any):
        super().__init__()
        self.scoring = Scoring(tuple(scorers), **options)

    def expand(self, pairs: beam.PCollection) -> Any:
        """Score batches of rows."""
        names = {*dict(_fields(pairs)), *schema.BACK_TRANSLATE.names}
        added = [of for of in schema.scored(tuple(self.scoring.scorers)) if of.name not in names]
        return _scored(pairs, self.scoring, added)


class ExactDeciles(beam.PTransform):
    """Adds `<score>_decile`, the decile (0 to 9) of each row among all rows, for each score.

    `bucketed = scored.pairs | ExactDeciles(["trigram_overlap"])`. Rows with equal scores are
    ordered by a hash of id and `candidate`. If no two rows have the same id and `candidate`, the
    sizes of deciles differ by at most one row. Scores must be np.float32. Rows with infinite or
    missing scores are rejected. The input must be bounded, and in the global window.
    """

    def __init__(self, scores: Sequence[str]):
        super().__init__()
        self.scores = tuple(scores)

    def expand(self, pairs: beam.PCollection) -> Any:
        """Read the scores twice, and then assign deciles."""
        checked = _scored(pairs, Scoring(self.scores), [])
        tables = checked.pairs | "Batch" >> beam.ParDo(_Batches())
        read = partial(score_columns, scorers=self.scores)
        statistics = OrderStatistics(read, starts_of_deciles)
        bounds = beam.pvalue.AsSingleton(tables | "Bounds" >> statistics)
        fields = [*_fields(pairs), *((schema.decile(name), np.int8) for name in self.scores)]
        assign = beam.ParDo(_WithDeciles(fields, self.scores), bounds)
        return PairsAndRejects(tables | "Assign" >> assign, checked.rejected)


def _fields(pairs: beam.PCollection) -> Fields:
    return list(named_fields_from_element_type(pairs.element_type))


def _scored(
    pairs: beam.PCollection, scoring: Scoring, added: Sequence[pa.Field]
) -> PairsAndRejects:
    new = {of.name for of in added}

    def divide(scorer: PairScorer, table: pa.Table) -> tuple[pa.Table, pa.Table]:
        target = pa.schema([*table.schema, *added])
        return score_table(table, scorer, scoring.scorers, target=target)

    loading = partial(scoring.open, [name for name in scoring.scorers if name in new])
    return _divided(pairs, loading, divide, added)


def _divided(
    pairs: beam.PCollection,
    load: Callable[[], Any],
    divide: Callable[[Any, pa.Table], tuple[pa.Table, pa.Table]],
    added: Sequence[pa.Field],
    accelerator: str | None = None,
) -> PairsAndRejects:
    """Apply `divide` to batches. `load` makes `divide`'s first argument once per process."""
    given = _fields(pairs)
    more: Fields = [(of.name, _TYPES[of.type]) for of in added]
    whole = [*given, *((name, Optional[kind]) for name, kind in [*more, ("reason", str)])]
    # All outputs of a columnar DoFn must have the same schema. So one output has all rows, both
    # accepted and rejected.
    dividing = beam.ParDo(_Divide(whole, load, divide))
    if accelerator:
        dividing = dividing.with_resource_hints(accelerator=accelerator)
    rows = pairs | "Divide" >> dividing
    accepted = _Columnar([*given, *more], lambda of: of.filter(of["reason"].is_null()))
    lost = _Columnar([*given, ("reason", str)], lambda of: of.filter(of["reason"].is_valid()))
    return PairsAndRejects(
        rows | "Accepted" >> beam.ParDo(accepted), rows | "Rejected" >> beam.ParDo(lost)
    )


class _OfType(beam.DoFn):
    def __init__(self, fields: Fields, how: Any):
        self.fields, self.how = fields, how

    def infer_output_type(self, input_type: Any) -> Any:
        return RowTypeConstraint.from_fields(self.fields)


class _Divide(_OfType):
    def __init__(self, fields: Fields, load: Callable[[], Any], how: Any):
        super().__init__(fields, how)
        self.load, self.shared = load, Shared()

    def setup(self) -> None:
        self.loaded: Any = self.shared.acquire(self.load)

    def process_batch(self, batch: pa.Table) -> Iterator[pa.Table]:
        parts = self.how(self.loaded, batch)
        for name, part in zip(("accepted", "rejected"), parts, strict=True):
            Metrics.counter(NAMESPACE, name).inc(len(part))
        table = pa.concat_tables(parts, promote_options="default")
        yield table.select([*dict(self.fields)])


class _Columnar(_OfType):
    def process_batch(self, batch: pa.Table) -> Iterator[pa.Table]:
        yield self.how(batch).select([*dict(self.fields)])


class _WithDeciles(_OfType):
    @beam.DoFn.yields_batches  # type: ignore[untyped-decorator]
    def process(self, table: pa.Table, bounds: Targets) -> Iterator[pa.Table]:
        for name, values in deciles_of(table, self.how, bounds).items():
            table = table.append_column(name, pa.array(values))
        yield table


class _Batches(beam.DoFn):
    """Turns each batch of rows into one element, a table, which two transforms can read."""

    def infer_output_type(self, input_type: Any) -> Any:
        return pa.Table

    @beam.DoFn.yields_elements  # type: ignore[untyped-decorator]
    def process_batch(self, batch: pa.Table) -> Iterator[pa.Table]:
        yield batch
