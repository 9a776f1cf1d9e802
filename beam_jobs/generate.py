"""Generation: language models write further candidates for every source.

The rows of a source's candidates are adjacent. Back-translations come first, then the answers of
each generator, in the order of the configuration. Rejected candidates leave gaps in the numbers of
the column `candidate`. If the run has a translation model, `translation_score` is the
log-probability of the candidate given the source, per subword.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.utils.shared import Shared

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.launch import Result, launch
from paraloom.beam_jobs.engine.options import threads_here
from paraloom.beam_jobs.engine.rejections import Limit, check_share
from paraloom.beam_jobs.engine.shards import Receipt, Shard, Unit, read_shard
from paraloom.beam_jobs.engine.unit_dofn import UnitDoFn
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.transforms.answer_files import AnswerFiles, GenerateMeasurements
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.chat.answers import Answer, Found, Request, Usage, candidates
from paraloom.models.chat.client import Clients
from paraloom.models.chat.options import ChatGenerator
from paraloom.models.chat.prompts import Prompt, variables
from paraloom.models.text.language_identifier import LANGUAGES, identifier_code, may_be


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationUnit(Unit):
    """A shard of pairs, and the shard of their back-translations, if there are any."""

    translated: Shard | None = None

    @property
    def rows(self) -> int:
        """Expected number of output rows, accepted or rejected."""
        return self.shard.rows * self.candidates + (self.translated.rows if self.translated else 0)


@dataclass(frozen=True, kw_only=True)
class GenerationJob:
    """Generators, prompts and limits of a job."""

    generators: Sequence[tuple[ChatGenerator, Prompt]]
    first: int  # value of `candidate` for the first answer of the first generator
    nmt: str | None  # value of `generator` for back-translations
    model: TranslatorFactory | None
    languages: tuple[str, str]  # language of the sources, language of the references
    limit: Limit
    accelerator: str | None = None  # Beam resource hint for the model


def run(
    units: Sequence[GenerationUnit], output: str, job: GenerationJob, arguments: Sequence[str]
) -> Result:
    """Ask the generators for candidates for each pair of `units`, and write them into `output`.

    Rate limits apply to each process. By default, a single process therefore sends all requests.
    """
    threads = threads_here(arguments)
    generate = beam.ParDo(_Generate(output, job, threads))
    if job.model:
        arguments = dataflow.one_process(arguments, job.accelerator)
        if job.accelerator:
            generate = generate.with_resource_hints(accelerator=job.accelerator)
    step = "Generate" >> generate
    return launch("generate", units, step, output, arguments, processes=1, limit=job.limit)


@dataclass(eq=False)
class _Generate(UnitDoFn):
    job: GenerationJob
    threads: int | None
    shared: Shared = field(default_factory=Shared)
    model: Shared = field(default_factory=Shared)

    def setup(self) -> None:
        super().setup()
        generators = [generator for generator, _ in self.job.generators]
        self.clients: Any = self.shared.acquire(lambda: Clients(generators))
        if factory := self.job.model:
            threads, accelerator = self.threads, self.job.accelerator
            self.translator: Any = self.model.acquire(lambda: factory.open(threads, accelerator))

    def make(self, unit: GenerationUnit) -> Receipt:
        pairs = read_shard(unit.shard)
        asked = [
            requests(generator, prompt, self.job.languages, pairs)
            for generator, prompt in self.job.generators
        ]
        with AnswerFiles(self.output, unit.name) as files:
            answers = self._ask(chain(*asked), files)
        parts, number, used = [], self.job.first, {}
        for (generator, _), some in zip(self.job.generators, asked, strict=True):
            took = (answers[key].usage for key in {request.key for request in some})
            used[generator.name] = sum(took, Usage())
            found = [of for each in some for of in candidates(answers[each.key], each)]
            parts.append(_rows(pairs, generator, number, found))
            number += generator.n
        rows = self._scored(self._in_language(pa.concat_tables(parts)))
        accepted, rejected = self._split(pairs, rows)
        if unit.translated:
            accepted = self._with_translations(accepted, read_shard(unit.translated))
        row = pc.index_in(accepted["id"], value_set=pairs["id"].combine_chunks()).to_numpy()
        order = np.lexsort((accepted[schema.CANDIDATE.name].to_numpy(), row))
        pieces = [(unit.name, accepted.take(pa.array(order)), rejected)]
        return self.commit(unit.rows, pieces, GenerateMeasurements(generators=used))

    def _ask(self, requests: Iterable[Request], files: AnswerFiles) -> dict[str, Answer]:
        """Return the answers by request key. Send only requests that have no answer in `files`.

        If too many candidates are rejected, raise a UserError and send no further requests.
        """
        answers, reasons, rows = files.read(), Counter[str](), 0
        new = {key: each for each in requests if (key := each.key) not in answers}

        def keep(answer: Answer) -> None:
            nonlocal rows
            if not answer.error:
                files.add(answer)
            answers[answer.key] = answer
            request = new[answer.key]
            for found in candidates(answer, request):
                if found.reason:
                    reasons[f"{request.generator.name}: {found.reason}"] += 1
            rows += request.generator.n
            check_share("generate", self.job.limit, rows, reasons, files.folder)

        if new:
            self.clients.ask(new.values(), keep)
        return answers

    def _in_language(self, rows: pa.Table) -> pa.Table:
        language = identifier_code(self.job.languages[1])
        if language not in LANGUAGES:
            return rows
        wrong = ~may_be(pc.fill_null(rows["translation"], ""), language)
        return _reject(rows, wrong, f"not in the language {language}")

    def _scored(self, rows: pa.Table) -> pa.Table:
        if self.job.model is None:
            return rows
        good = rows["reason"].is_null()
        at = np.flatnonzero(good.to_numpy())
        some = rows.filter(good)
        texts = some["translation"].to_pylist()
        scores = np.zeros(len(rows), np.float32)
        subwords = np.zeros(len(rows), np.int16)
        scores[at] = np.minimum(self.translator.score(some["source"].to_pylist(), texts), 0)
        subwords[at] = self.translator.subwords_of(texts)
        rows = rows.append_column("translation_score", pa.array(scores))
        rows = rows.append_column("translation_subwords", pa.array(subwords))
        return _reject(rows, np.isnan(scores), "the translation model cannot score it")

    def _split(self, pairs: pa.Table, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        reason = pc.binary_join_element_wise(rows["generator"], rows["reason"], ": ")
        refused = schema.rejected(pa.schema([*pairs.schema, schema.CANDIDATE, schema.GENERATOR]))
        rejected = rows.set_column(rows.column_names.index("reason"), "reason", reason)
        rejected = rejected.filter(reason.is_valid()).select(refused.names).cast(refused)
        nmt = self.job.model is not None
        output = schema.translated(candidates=True, generators=True, nmt=nmt)
        target = pa.schema([*(of for of in pairs.schema if of.name not in output.names), *output])
        return rows.filter(reason.is_null()).select(target.names).cast(target), rejected

    def _with_translations(self, rows: pa.Table, translated: pa.Table) -> pa.Table:
        if not schema.has_candidates(translated):
            number = pa.array(np.zeros(len(translated), np.int8))
            translated = translated.append_column(schema.CANDIDATE, number)
        name = pa.repeat(pa.scalar(self.job.nmt, pa.string()), len(translated))
        more = translated.append_column(schema.GENERATOR, name)
        return pa.concat_tables([more.select(rows.column_names).cast(rows.schema), rows])


def requests(
    of: ChatGenerator, prompt: Prompt, languages: tuple[str, str], pairs: pa.Table
) -> list[Request]:
    """Make one request to the generator `of` for each pair."""
    more = variables(*languages, n=of.n, json=of.response == "json")
    return [
        Request(of, prompt.render(row, **more), (row["source"], row["reference"]))
        for row in pairs.to_pylist()
    ]


def _rows(
    pairs: pa.Table, generator: ChatGenerator, first: int, found: Sequence[Found]
) -> pa.Table:
    """Make one row per candidate in `found`. The numbers of each pair start at `first`."""
    row = np.repeat(np.arange(len(pairs)), generator.n)
    number = np.tile(np.arange(first, first + generator.n, dtype=np.int8), len(pairs))
    table = pairs.take(pa.array(row)).append_column(schema.CANDIDATE, pa.array(number))
    name = pa.repeat(pa.scalar(generator.name), len(row))
    texts = pa.array([of.text for of in found], pa.string())
    reasons = pa.array([of.reason for of in found], pa.string())
    table = table.append_column(schema.GENERATOR, name).append_column("translation", texts)
    return table.append_column("reason", reasons)


def _reject(rows: pa.Table, which: np.ndarray, reason: str) -> pa.Table:
    """Add `reason` to the rows marked in `which`, bool [n], unless they already have a reason."""
    at = rows.column_names.index("reason")
    new = pc.if_else(pa.array(which), reason, pa.scalar(None, pa.string()))
    return rows.set_column(at, "reason", pc.coalesce(rows["reason"], new))
