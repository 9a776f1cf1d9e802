"""What Dataflow would be given: the real jobs, built by its runner, which submits nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.portability.api import beam_runner_api_pb2

from paraloom.beam_jobs import back_translate, bucket, idf, ingest, score, select
from paraloom.beam_jobs.bitext import Bitext
from paraloom.beam_jobs.engine import launch
from paraloom.beam_jobs.engine import options as beam_options
from paraloom.beam_jobs.engine.shards import Shard, content_key, units
from paraloom.beam_jobs.runners import dataflow
from paraloom.beam_jobs.transforms.criteria import Criteria
from paraloom.beam_jobs.transforms.exclusion import Exclusion
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.errors import UserError
from paraloom.models.nmt.options import NmtOptions

ROOT = Path(__file__).resolve().parents[4]
GPU = "type:nvidia-l4;count:1;machine_type:g2-standard-4;install-nvidia-driver"
IMAGE = "europe-docker.pkg.dev/project/paraloom/gpu:0.1.0"
PLACE = ["--project=project", "--region=europe-west4", "--temp_location=gs://bucket/tmp"]
DATAFLOW = ["--runner=DataflowRunner", *PLACE]
ACCELERATOR = "beam:resources:accelerator:v1"

Jobs = dict[str, Callable[[list[str]], Any]]
Built = Callable[..., tuple[Any, dict[str, Any], list[Path]]]


class BuiltError(Exception):
    """The job is built; there is nobody to run it."""


@pytest.fixture
def built(libraries: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Built:
    """The pipeline, the description and the staged files that a job would be submitted with."""
    made: list[Any] = []

    def stop(
        build: Callable[[Any], object], options: PipelineOptions, runner: Any, user: Any
    ) -> None:
        assert runner is None
        pipeline = beam.Pipeline(options=options)
        build(pipeline)
        made.append(pipeline.run().job)
        raise BuiltError

    monkeypatch.setattr(launch, "run_pipeline", stop)
    monkeypatch.setattr(beam_options, "_VISIBLE", "/")  # the folder is on this machine

    def description(
        job: Callable[[list[str]], Any], *arguments: str
    ) -> tuple[Any, dict[str, Any], list[Path]]:
        from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient

        with pytest.raises(BuiltError):
            job([*DATAFLOW, "--dry_run=True", "--no_auth", *arguments])
        staging = tmp_path / "staging"
        staging.mkdir(exist_ok=True)
        options = made[-1].options
        options.view_as(GoogleCloudOptions).staging_location = str(staging)
        DataflowApplicationClient(options, str(staging)).create_job_description(made[-1])
        content = (staging / "pipeline.pb").read_bytes()
        pipeline = beam_runner_api_pb2.Pipeline.FromString(content)
        return pipeline, json.loads(made[-1].json()), list(staging.iterdir())

    return description


def jobs_of(folder: Path, accelerator: str | None, sentences: str = "") -> Jobs:
    """All jobs of a run; with a model of sentences, if there is one."""
    work = units(
        [Shard(f"gs://bucket/part-{i}.parquet", 10, content_key(i), 9) for i in range(3)], ""
    )
    at, scorers = str(folder), ["translation_score", "trigram_overlap"]
    criteria = Criteria(by="trigram_overlap", deciles=(8, 9), max_tokens=30, size=5, seed=1)
    scoring = score.Scoring(scorers)
    if sentences:
        scoring = score.Scoring(["sentence_similarity"], {"sentence_model": sentences})
        exclude = Exclusion(folder="/opt", digest="1", similarity=0.9, model=sentences)
        criteria = replace(criteria, exclude=exclude)
    (text := folder / "a.tsv").write_text("pes\tdog\n")
    bitext = Bitext(format="tsv", paths=(str(text),), name="1-a.tsv")
    reading = ingest.Reading(shard_rows=10, max_characters=100)
    model = TranslatorFactory("/opt/model", NmtOptions(model="/opt/model"))
    job = back_translate.TranslationJob(model=model, accelerator=accelerator)
    return {
        "ingest": lambda a: ingest.run([bitext], at, "", reading, a),
        "back_translate": lambda a: back_translate.run(work, at, job, a),
        "idf": lambda a: idf.run(work, at, a),
        "score": lambda a: score.run(work, at, scoring, a),
        "bucket": lambda a: bucket.run(work, at, scorers, a),
        "select": lambda a: select.run(work, at, criteria, a),
    }


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return jobs_of(tmp_path, GPU)


def hinted(pipeline: Any) -> dict[str, bytes]:
    """The steps that ask for an accelerator, and which."""
    parts = pipeline.components
    return {
        step.unique_name: parts.environments[step.environment_id].resource_hints[ACCELERATOR]
        for step in parts.transforms.values()
        if ACCELERATOR in parts.environments[step.environment_id].resource_hints
    }


def images(pipeline: Any) -> set[str]:
    """The images that the steps run in."""
    parts = pipeline.components
    used = {step.environment_id for step in parts.transforms.values()} - {""}  # the runner's own
    payloads = (parts.environments[name].payload for name in used)
    return {beam_runner_api_pb2.DockerPayload.FromString(p).container_image for p in payloads}


@pytest.mark.parametrize("name", ["ingest", "back_translate", "idf", "score", "select"])
def test_a_gpu_is_asked_for_back_translation_alone(built: Built, jobs: Jobs, name: str) -> None:
    pipeline, job, _ = built(jobs[name], f"--sdk_container_image={IMAGE}")
    (pool,) = job["environment"]["workerPools"]
    containers = {c["containerImage"] for c in pool["sdkHarnessContainerImages"]}
    experiments = job["environment"]["experiments"]
    found = hinted(pipeline)
    if name == "back_translate":
        assert found == {"Translate": GPU.encode()}
        assert len(pool["sdkHarnessContainerImages"]) == 2  # with and without a GPU
        assert "no_use_multiple_sdk_containers" in experiments
        assert pool["numThreadsPerWorker"] == 1 + 1
        steps = {step.unique_name: step for step in pipeline.components.transforms.values()}
        # The units are spread over the machines with a GPU.
        given = list(steps["Translate"].inputs.values())
        assert given == list(steps["Reshuffle"].outputs.values())
    else:
        assert found == {}
        assert len(pool["sdkHarnessContainerImages"]) == 1
        assert "use_multiple_sdk_containers" in experiments
    assert containers == images(pipeline) == {IMAGE}
    assert job["type"] == "JOB_TYPE_BATCH"


@pytest.mark.parametrize("name", ["back_translate", "score", "select"])
def test_without_gpu_one_process_has_a_model(built: Built, tmp_path: Path, name: str) -> None:
    jobs = jobs_of(tmp_path, None, "/opt/sentences")
    _, job, _ = built(jobs[name], f"--sdk_container_image={IMAGE}")
    (pool,) = job["environment"]["workerPools"]
    assert "no_use_multiple_sdk_containers" in job["environment"]["experiments"]
    assert pool["numThreadsPerWorker"] == 1 + 1


def test_workers_are_small_scaled_and_get_no_main_session(built: Built, jobs: Jobs) -> None:
    options = ["--machine_type=e2-standard-2", "--max_num_workers=50"]
    _, job, staged = built(jobs["bucket"], f"--sdk_container_image={IMAGE}", *options)
    (pool,) = job["environment"]["workerPools"]
    assert job["name"].startswith("paraloom-bucket-")
    assert pool["machineType"] == "e2-standard-2"
    assert pool["autoscalingSettings"] == {"maxNumWorkers": 50}  # no algorithm: the service's own
    assert "numWorkers" not in pool
    names = {"pipeline.pb", "submission_environment_dependencies.txt"}
    assert {path.name for path in staged} == names
    assert job["environment"]["sdkPipelineOptions"]["options"]["save_main_session"] is False


@pytest.mark.parametrize(
    ("arguments", "output", "message"),
    [
        (PLACE[1:], "gs://b/run", "DataflowRunner: --project is missing"),
        (PLACE[:2], "gs://b/run", "DataflowRunner: --temp_location is missing"),
        (PLACE, "gs://b/run", "--sdk_container_image is missing; build an image"),
        ([*PLACE, "--sdk_container_image=x"], "runs/x", "runs/x: Dataflow workers cannot read"),
    ],
)
def test_what_is_missing_is_one_line(
    libraries: None, arguments: list[str], output: str, message: str
) -> None:
    options = PipelineOptions(["--runner=DataflowRunner", *arguments])
    with pytest.raises(UserError, match=message):
        dataflow.prepare(options, output)
