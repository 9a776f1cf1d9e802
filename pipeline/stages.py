"""The stages of a run: what each is made from, how it is made, and when it is finished.

sample → ingest → nmt → back_translate → score → bucket → corpus → embeddings → evaluate
             paragram, idf, classifier ↗
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from beam_jobs import back_translate, bucket, ingest, score, select, storage
from beam_jobs.bitext import find_bitext
from beam_jobs.conditions import Condition
from beam_jobs.launch import Result, cores
from beam_jobs.shards import Receipt, Shard, content_key, receipts, units
from models.errors import UserError
from models.files import atomic_file, digest
from pipeline import statistics, tables
from pipeline.config import Config
from pipeline.manifest import Manifest


@dataclass
class Run:
    """A run at work: its configuration, its record, and what its stages left so far."""

    config: Config
    manifest: Manifest
    arguments: Sequence[str] = ()  # for Beam
    inputs: list[dict[str, Any]] = field(default_factory=list)

    def folder(self, stage: str) -> str:
        """Where a stage leaves its files."""
        return storage.join(self.config.run, stage)

    def shards(self, stage: str) -> list[Shard]:
        """The part files of a finished stage, in order."""
        return [shard for receipt in receipts(self.folder(stage)) for shard in receipt.shards]

    @property
    def translates_with_own_model(self) -> bool:
        """Whether the run trains the model that it translates with."""
        return self.config.nmt.model is None

    @property
    def model(self) -> str:
        """The model folder that translates."""
        return self.config.nmt.model or self.folder("nmt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a run.

    Attributes:
        needs: stages it reads, if the configuration has them.
        version: raised when the stage makes something else from the same.
        parts: what its result depends on beside the stages it needs, as JSON values.
        make: does the work and gives its account; `digest` in it stands for what was made.
        intact: whether what the account describes is still there.
        wanted: whether a configuration has this stage.
    """

    name: str
    needs: tuple[str, ...] = ()
    version: int = 1
    parts: Callable[[Run], Any]
    make: Callable[[Run, str], dict[str, Any]]
    intact: Callable[[Run], bool]
    wanted: Callable[[Config], bool] = lambda config: True

    def key(self, run: Run) -> str:
        """The key of all that the result depends on."""
        needed = [stage for stage in closure(self.name, run.config) if stage.name in self.needs]
        made = {s.name: run.manifest.stages.get(s.name, {}).get("digest") for s in needed}
        return content_key(self.name, self.version, self.parts(run), made)

    def finished(self, run: Run) -> bool:
        """Whether nothing is to be done."""
        account = run.manifest.stages.get(self.name)
        return account is not None and account.get("key") == self.key(run) and self.intact(run)


# --- stages of pairs -----------------------------------------------------------------------------


def _account(result: Result, started: float) -> dict[str, Any]:
    """The account of a stage of pairs; RuntimeError if a row is unaccounted for."""
    rows_in = sum(receipt.rows_in for receipt in result.receipts)
    rows_out = sum(receipt.rows_out for receipt in result.receipts)
    rejected: dict[str, int] = {}
    for receipt in result.receipts:
        for reason, rows in receipt.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + rows
    if rows_in != rows_out + sum(rejected.values()):
        raise RuntimeError(f"{rows_in} rows in, {rows_out} out, rejected {rejected}")
    return {
        "rows_in": rows_in,
        "rows_out": rows_out,
        "rows_rejected": sum(rejected.values()),
        "rejected": dict(sorted(rejected.items(), key=lambda item: -item[1])),
        "shards": sum(len(receipt.shards) for receipt in result.receipts),
        "seconds": round(time.monotonic() - started, 3),
        "worker_seconds": round(sum(receipt.seconds for receipt in result.receipts), 3),
        "metrics": result.metrics,
        "digest": _digest(result.receipts),
    }


def _digest(of: Sequence[Receipt]) -> str:
    return content_key([(s.name, s.rows, s.digest) for receipt in of for s in receipt.shards])


def _shards_intact(stage: str) -> Callable[[Run], bool]:
    """The receipts add up to the digest of the account, and their part files are there."""

    def intact(run: Run) -> bool:
        found = receipts(run.folder(stage))
        files = set(storage.names(run.folder(stage)))
        there = all(f"{shard.name}.parquet" in files for r in found for shard in r.shards)
        return there and _digest(found) == run.manifest.stages[stage]["digest"]

    return intact


def _ingest_parts(run: Run) -> Any:
    options = run.config.input
    bitexts = find_bitext(options.format, options.paths)
    run.inputs = [
        {"path": path, "bytes": storage.size(path), "sha256": storage.file_digest(path)}
        for bitext in bitexts
        for path in bitext.paths
    ]
    content = [(bitext.format, bitext.name) for bitext in bitexts]
    return [content, [i["sha256"] for i in run.inputs], options.shard_rows, options.max_characters]


def _ingest(run: Run, key: str) -> dict[str, Any]:
    started = time.monotonic()
    options = run.config.input
    run.manifest.values["inputs"] = run.inputs
    result = ingest.run(
        find_bitext(options.format, options.paths),
        run.folder("ingest"),
        key,
        shard_rows=options.shard_rows,
        max_characters=options.max_characters,
        rows=sum(i["bytes"] for i in run.inputs) // 50,
        arguments=run.arguments,
    )
    account = _account(result, started)
    if not account["rows_out"]:
        raise UserError(
            f"{run.folder('ingest')}: none of {account['rows_in']:,} rows can be used; "
            "the reasons stand in its rejected/ folder: is input.format right?"
        )
    return account


def _back_translate_parts(run: Run) -> Any:
    options = run.config.nmt
    decoding = [options.engine, options.compute_type, options.beam, options.batch_tokens]
    model = digest(options.model) if options.model else None
    return [*decoding, options.max_source_subwords, model]


def _back_translate(run: Run, key: str) -> dict[str, Any]:
    started = time.monotonic()
    # Per shard, so that more input translates only what is new.
    model = digest(run.model)
    base = content_key("back_translate", back_translate.VERSION, _back_translate_parts(run), model)
    result = back_translate.run(
        units(run.shards("ingest"), base),
        run.folder("back_translate"),
        run.model,
        run.config.nmt,
        run.arguments,
        accelerator=run.config.accelerator,
    )
    return {**_account(result, started), "model": {"path": run.model, "sha256": model}}


def _score(run: Run, key: str) -> dict[str, Any]:
    started = time.monotonic()
    options = run.config.score
    paths = tables.paths(run)
    made = {name: run.manifest.stages[name]["digest"] for name in paths}
    base = content_key("score", score.VERSION, options.scorers, made)
    result = score.run(
        units(run.shards("back_translate"), base),
        run.folder("score"),
        options.scorers,
        paths,
        run.arguments,
    )
    return _account(result, started)


def _bucket(run: Run, key: str) -> dict[str, Any]:
    started = time.monotonic()
    work = units(run.shards("score"), key)  # a bound depends on every row: all of them or none
    result = bucket.run(work, run.folder("bucket"), run.config.score.scorers, run.arguments)
    return {**_account(result, started), "deciles": bucket.summarise(result.receipts)}


def _criteria(config: Config) -> select.Criteria:
    options = config.select
    return select.Criteria(
        by=options.by,
        deciles=None if options.deciles is None else tuple(sorted(set(options.deciles))),
        max_tokens=options.max_tokens,
        size=options.size,
        seed=config.seed,
        where=tuple(map(Condition.parse, options.where)),
    )


def _corpus(run: Run, key: str) -> dict[str, Any]:
    started = time.monotonic()
    work = units(run.shards("bucket"), key)
    result = select.run(work, run.folder("corpus"), _criteria(run.config), run.arguments)
    return _account(result, started)


# --- stages of models ----------------------------------------------------------------------------


def _folder_intact(stage: str) -> Callable[[Run], bool]:
    def intact(run: Run) -> bool:
        folder = Path(run.folder(stage))
        return folder.is_dir() and digest(folder) == run.manifest.stages[stage]["digest"]

    return intact


def _sample_parts(run: Run) -> Any:
    assert run.config.sample is not None
    return [run.config.sample.pairs, run.config.seed, _source_of_sample()]


def _sample(run: Run, key: str) -> dict[str, Any]:
    from pipeline.sample import write_sample

    started = time.monotonic()
    assert run.config.sample is not None
    folder = Path(run.config.sample.folder)
    counts = write_sample(folder, pairs=run.config.sample.pairs, seed=run.config.seed)
    return {
        "counts": counts,
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(folder),
    }


def _sample_intact(run: Run) -> bool:
    assert run.config.sample is not None
    folder = Path(run.config.sample.folder)
    return folder.is_dir() and digest(folder) == run.manifest.stages["sample"]["digest"]


def _nmt(run: Run, key: str) -> dict[str, Any]:
    from models.nmt.train import train_nmt

    started = time.monotonic()
    metrics = train_nmt(
        [Path(shard.path) for shard in run.shards("ingest")],
        Path(run.folder("nmt")),
        run.config.nmt.training,
        seed=run.config.seed,
        source_language=run.config.input.source_language,
        threads=cores(),
    )
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(run.folder("nmt")),
    }


def _embeddings_parts(run: Run) -> Any:
    from models.embeddings.train import HOW

    options = run.config.embeddings
    kept = {name: value for name, value in asdict(options).items() if name not in HOW}
    kept["initial_vectors"] = digest(options.initial_vectors) if options.initial_vectors else None
    return [kept, run.config.seed]


def _statistics_parts(run: Run) -> Any:
    options = run.config.statistics
    assert options is not None
    spacy = options.spacy
    return digest(spacy) if spacy and Path(spacy).exists() else spacy


def _statistics(run: Run, key: str) -> dict[str, Any]:
    started = time.monotonic()
    options = run.config.statistics
    assert options is not None
    corpora = {
        name: [shard.path for shard in run.shards(stage)]
        for name, stage in (("all pairs", "bucket"), ("corpus", "corpus"))
    }
    found = statistics.describe(
        corpora, run.arguments, spacy=options.spacy, idf=run.config.score.idf
    )
    return {
        "results": found,
        "seconds": round(time.monotonic() - started, 3),
        "digest": content_key(found),
    }


def _embeddings(run: Run, key: str) -> dict[str, Any]:
    from models.embeddings.train import train_embeddings

    started = time.monotonic()
    metrics = train_embeddings(
        [shard.path for shard in run.shards("corpus")],
        Path(run.folder("embeddings")),
        run.config.embeddings,
        seed=run.config.seed,
        threads=cores(),
    )
    return {
        "training": metrics,
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(run.folder("embeddings")),
    }


def _evaluate(run: Run, key: str) -> dict[str, Any]:
    from models.embeddings.evaluate import evaluate_models
    from models.embeddings.model import load_encoder

    started = time.monotonic()
    options = run.config.evaluate
    encoder = load_encoder(run.folder("embeddings"))
    report = evaluate_models(
        [(run.config.embeddings.model, encoder.embed)],
        sts=Path(options.sts) if options.sts else None,
        sick=Path(options.sick) if options.sick else None,
    )
    with atomic_file(_evaluation(run)) as path:
        path.write_text(json.dumps(report.json(), indent=1))
    return {
        "results": report.json(),
        "seconds": round(time.monotonic() - started, 3),
        "digest": digest(_evaluation(run)),
    }


def _evaluation(run: Run) -> Path:
    return Path(run.config.run) / "evaluation.json"


def _evaluate_parts(run: Run) -> Any:
    return [digest(p) if p else None for p in (run.config.evaluate.sts, run.config.evaluate.sick)]


STAGES: tuple[Stage, ...] = (
    Stage(
        name="sample",
        parts=_sample_parts,
        make=_sample,
        intact=_sample_intact,
        wanted=lambda config: config.sample is not None,
    ),
    Stage(
        name="ingest",
        needs=("sample",),
        version=ingest.VERSION,
        parts=_ingest_parts,
        make=_ingest,
        intact=_shards_intact("ingest"),
    ),
    Stage(
        name="nmt",
        needs=("ingest",),
        parts=lambda run: [
            asdict(run.config.nmt.training),
            run.config.input.source_language,
            run.config.seed,
        ],
        make=_nmt,
        intact=_folder_intact("nmt"),
        wanted=lambda config: config.nmt.model is None,
    ),
    Stage(
        name="back_translate",
        needs=("ingest", "nmt"),
        version=back_translate.VERSION,
        parts=_back_translate_parts,
        make=_back_translate,
        intact=_shards_intact("back_translate"),
    ),
    Stage(
        name="paragram",
        needs=("sample",),
        parts=tables.paragram_parts,
        make=tables.make_paragram,
        intact=_folder_intact("paragram"),
        wanted=lambda config: tables.needs(config, "paragram"),
    ),
    Stage(
        name="idf",
        needs=("sample", "ingest"),
        parts=tables.idf_parts,
        make=tables.make_idf,
        intact=_folder_intact("idf"),
        wanted=lambda config: tables.needs(config, "idf"),
    ),
    Stage(
        name="classifier",
        needs=("back_translate",),
        parts=tables.classifier_parts,
        make=tables.make_classifier,
        intact=_folder_intact("classifier"),
        wanted=lambda config: tables.needs(config, "classifier"),
    ),
    Stage(
        name="score",
        needs=("back_translate", "paragram", "idf", "classifier"),
        version=score.VERSION,
        parts=lambda run: run.config.score.scorers,
        make=_score,
        intact=_shards_intact("score"),
    ),
    Stage(
        name="bucket",
        needs=("score",),
        version=bucket.VERSION,
        parts=lambda run: run.config.score.scorers,
        make=_bucket,
        intact=_shards_intact("bucket"),
    ),
    Stage(
        name="corpus",
        needs=("bucket",),
        version=select.VERSION,
        parts=lambda run: asdict(_criteria(run.config)),
        make=_corpus,
        intact=lambda run: (
            _shards_intact("corpus")(run) and storage.exists(select.tsv_path(run.folder("corpus")))
        ),
    ),
    Stage(
        name="statistics",
        needs=("bucket", "corpus"),
        version=statistics.VERSION,
        parts=_statistics_parts,
        make=_statistics,
        intact=lambda run: True,  # the account is all there is
        wanted=lambda config: config.statistics is not None,
    ),
    Stage(
        name="embeddings",
        needs=("corpus",),
        parts=_embeddings_parts,
        make=_embeddings,
        intact=_folder_intact("embeddings"),
    ),
    Stage(
        name="evaluate",
        needs=("sample", "embeddings"),
        parts=_evaluate_parts,
        make=_evaluate,
        intact=lambda run: (
            _evaluation(run).is_file()
            and digest(_evaluation(run)) == run.manifest.stages["evaluate"]["digest"]
        ),
        wanted=lambda config: bool(config.evaluate.sts or config.evaluate.sick),
    ),
)


def _source_of_sample() -> str:
    """What the generator makes depends on its code: the digest of its package."""
    import pipeline.sample

    files = sorted(Path(pipeline.sample.__file__).parent.rglob("*"))
    kept = [f for f in files if f.is_file() and "__pycache__" not in f.parts]
    return content_key([(file.name, digest(file)) for file in kept])


def closure(target: str, config: Config) -> list[Stage]:
    """The stages that `target` needs, and itself, in order."""
    by_name = {stage.name: stage for stage in STAGES}
    wanted: set[str] = set()

    def add(name: str) -> None:
        if by_name[name].wanted(config):
            wanted.add(name)
            for need in by_name[name].needs:
                add(need)

    add(target)
    return [stage for stage in STAGES if stage.name in wanted]


def after(names: set[str]) -> list[str]:
    """The stages that read what `names` make, directly or not, and `names` themselves."""
    found = set(names)
    for stage in STAGES:
        if found & set(stage.needs):
            found.add(stage.name)
    return sorted(found)
