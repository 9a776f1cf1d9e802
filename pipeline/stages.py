"""The stages of a run: what each is made from, how it is made, and when it is finished.

ingest → nmt → back_translate → score → bucket → choice → corpus → embeddings → evaluate
    paragram, idf, classifier ↗
With several rounds, the last three stand for the best round's: see `rounds`.
"""

from __future__ import annotations

from dataclasses import asdict

from beam_jobs import back_translate, bucket, ingest, score, select
from beam_jobs.io.shards import content_key
from pipeline import choice, model_stages, pair_stages, statistics, tables
from pipeline.config import Config
from pipeline.rounds import looped
from pipeline.stage import Run, Stage

STAGES: tuple[Stage, ...] = (
    Stage(
        name="ingest",
        version=ingest.VERSION,
        parts=pair_stages.ingest_parts,
        make=pair_stages.make_ingest,
        intact=pair_stages.shards_intact("ingest"),
    ),
    Stage(
        name="nmt",
        needs=("ingest",),
        parts=lambda run: [
            asdict(run.config.nmt.training),
            run.input.source_language,
            run.config.seed,
        ],
        make=model_stages.make_nmt,
        intact=model_stages.folder_intact("nmt"),
        wanted=lambda config: config.nmt.model is None,
    ),
    Stage(
        name="back_translate",
        needs=("ingest", "nmt"),
        version=back_translate.VERSION,
        parts=pair_stages.back_translate_parts,
        make=pair_stages.make_back_translate,
        intact=pair_stages.shards_intact("back_translate"),
    ),
    Stage(
        name="paragram",
        parts=tables.paragram_parts,
        make=tables.make_paragram,
        intact=model_stages.folder_intact("paragram"),
        wanted=lambda config: tables.needs(config, "paragram"),
    ),
    Stage(
        name="idf",
        needs=("ingest",),
        parts=tables.idf_parts,
        make=tables.make_idf,
        intact=model_stages.folder_intact("idf"),
        wanted=lambda config: tables.needs(config, "idf"),
    ),
    Stage(
        name="classifier",
        needs=("back_translate",),
        parts=tables.classifier_parts,
        make=tables.make_classifier,
        intact=model_stages.folder_intact("classifier"),
        wanted=lambda config: tables.needs(config, "classifier"),
    ),
    Stage(
        name="score",
        needs=("back_translate", "paragram", "idf", "classifier"),
        version=score.VERSION,
        parts=lambda run: run.scorers,
        make=pair_stages.make_score,
        intact=pair_stages.shards_intact("score"),
    ),
    Stage(
        name="bucket",
        needs=("score",),
        version=bucket.VERSION,
        parts=lambda run: run.scorers,
        make=pair_stages.make_bucket,
        intact=pair_stages.shards_intact("bucket"),
    ),
    Stage(
        name="choice",
        needs=("bucket",),
        version=choice.VERSION,
        parts=choice.choice_parts,
        make=choice.make_choice,
        intact=lambda run: True,  # the account is all that others read
        wanted=lambda config: config.select.by == "auto",
    ),
    Stage(
        name="corpus",
        needs=("bucket", "choice"),
        version=select.VERSION,
        parts=lambda run: asdict(pair_stages.criteria(run)),
        make=pair_stages.make_corpus,
        intact=pair_stages.corpus_intact,
    ),
    Stage(
        name="statistics",
        needs=("bucket", "corpus"),
        version=statistics.VERSION,
        parts=model_stages.statistics_parts,
        make=model_stages.make_statistics,
        intact=lambda run: True,  # the account is all there is
        wanted=lambda config: config.statistics is not None,
    ),
    Stage(
        name="embeddings",
        needs=model_stages.embeddings_needs,
        parts=model_stages.embeddings_parts,
        make=model_stages.make_embeddings,
        intact=model_stages.folder_intact("embeddings"),
    ),
    Stage(
        name="evaluate",
        needs=("embeddings",),
        parts=model_stages.evaluate_parts,
        make=model_stages.make_evaluate,
        intact=model_stages.evaluation_intact,
        wanted=lambda config: bool(config.evaluate.sts or config.evaluate.sick),
    ),
)


def plan(config: Config) -> tuple[Stage, ...]:
    """All stages that a run may have, in order."""
    rounds = config.loop.rounds
    return STAGES if rounds == 1 else looped(STAGES, rounds)


def key_of(stage: Stage, run: Run) -> str:
    """The key of all that a stage's result depends on.

    Not of the place: a first round has the keys of a run with one round.
    """
    reads = stage.reads(run.config)
    needed = [other for other in closure(stage.name, run.config) if other.name in reads]
    own = f"rounds/{stage.round}/"
    made = {
        other.name.removeprefix(own): record.digest
        if (record := run.manifest.stages.get(other.name))
        else None
        for other in needed
    }
    return content_key(stage.base, stage.version, stage.parts(run.at(stage.round)), made)


def finished(stage: Stage, run: Run) -> bool:
    """Whether nothing is to be done."""
    record = run.manifest.stages.get(stage.name)
    current = record is not None and record.key == key_of(stage, run)
    return current and stage.intact(run.at(stage.round))


def closure(target: str, config: Config) -> list[Stage]:
    """The stages that `target` needs, and itself, in order."""
    stages = plan(config)
    by_name = {stage.name: stage for stage in stages}
    wanted: set[str] = set()

    def add(name: str) -> None:
        if name not in wanted and by_name[name].wanted(config):
            wanted.add(name)
            for need in by_name[name].reads(config):
                add(need)

    add(target)
    return [stage for stage in stages if stage.name in wanted]


def after(names: set[str], config: Config) -> list[str]:
    """The stages that read what `names` make, directly or not, and `names` themselves."""
    found = set(names)
    for stage in plan(config):
        if found & set(stage.reads(config)):
            found.add(stage.name)
    return sorted(found)
