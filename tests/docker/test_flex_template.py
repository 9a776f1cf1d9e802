"""The Flex Template: its specification against the service's own types, and its program."""

import json
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docker" / "flex-template.json").read_text()
PLACE = ["--project=p", "--region=r", "--temp_location=gs://b/tmp", "--sdk_container_image=i"]


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docker" / "flex_template.py"))


@pytest.fixture(scope="module")
def dataflow() -> Any:
    return pytest.importorskip("google.cloud.dataflow", reason="needs paraloom[dataflow]")


def test_the_specification_is_what_the_service_reads(dataflow: Any) -> None:
    """Field by field: those that it does not know are errors."""
    spec = dataflow.ContainerSpec.from_json(TEXT, ignore_unknown_fields=False)
    assert spec.sdk_info.language == dataflow.SDKInfo.Language.PYTHON
    assert [p.name for p in spec.metadata.parameters if not p.is_optional] == ["config"]
    for parameter in spec.metadata.parameters:
        assert parameter.label and parameter.help_text
        assert all(re.compile(regex) for regex in parameter.regexes)
    with pytest.raises(Exception, match="imagee"):
        dataflow.ContainerSpec.from_json(TEXT.replace('"image"', '"imagee"'))


def test_its_images_are_those_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    spec = json.loads(TEXT)
    targets = {
        image.rsplit("/", 1)[1]
        for image in (spec["image"], spec["defaultEnvironment"]["sdkContainerImage"])
    }
    assert targets == {f"launcher:{version}", f"cpu:{version}"}


def test_the_program_knows_the_parameters_and_no_others(program: dict[str, Any]) -> None:
    names = {p["name"] for p in json.loads(TEXT)["metadata"]["parameters"]}
    assert names == vars(program["PARSER"].parse_args(["--config=x"])).keys()


def test_the_command_has_the_place_of_its_own_job(program: dict[str, Any]) -> None:
    changes = "--changes=run=gs://b/run 'input.paths=[gs://b/a, gs://b/c]'"
    more = ["--beam=--max_num_workers=50 --machine_type=e2-standard-2", "--no_use_public_ips"]
    job = ["--runner=DataflowRunner", *PLACE, "--machine_type=e2-standard-4", "--num_workers=1"]
    own, rest = program["PARSER"].parse_known_args([*job, "--config=gs://b/c", changes, *more])
    found = program["arguments"](own, PipelineOptions(rest))
    end = found.index("--")
    assert found[:end] == [
        *("corpus", "--config", "gs://b/c", "--set", "run=gs://b/run"),
        *("--set", "input.paths=[gs://b/a, gs://b/c]"),
    ]
    assert found[end + 1] == "--runner=DataflowRunner"
    assert set(found[end + 2 :]) == {
        *PLACE,
        *("--no_use_public_ips", "--max_num_workers=50", "--machine_type=e2-standard-2"),
    }
