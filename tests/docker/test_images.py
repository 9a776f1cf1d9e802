"""The files of images and of a cluster, without a container engine, against what they name."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.flink import cluster, install
from tests.run_helpers import ROOT

DOCKER = ROOT / "docker"
REHEARSAL = DOCKER / "rehearse.sh"
LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (DOCKER / "Dockerfile").read_text()


def test_the_dockerfile_passes_its_linter() -> None:
    beside = Path(sys.executable).parent
    hadolint = shutil.which("hadolint", path=beside) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, str(DOCKER / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", ["install.sh", "rehearse.sh"])
def test_the_scripts_are_sound_shell(script: str) -> None:
    assert subprocess.run(["sh", "-n", str(DOCKER / script)]).returncode == 0
    assert (DOCKER / script).stat().st_mode & 0o111


def test_there_are_targets_for_workers_with_the_beam_of_the_submitter(dockerfile: str) -> None:
    stages = [("apache/beam_python3.11_sdk:${BEAM}", "cpu"), ("cpu", "gpu")]
    assert re.findall(r"^FROM (\S+) AS (\w+)$", dockerfile, re.M) == stages
    (beam,) = re.findall(r"^ARG BEAM=(\S+)$", dockerfile, re.M)
    assert f"\napache-beam=={beam}\n" in LOCK


def test_everything_that_is_copied_is_there_and_reaches_the_builder(dockerfile: str) -> None:
    lines = re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.M)
    copied = [name for line in lines for name in line.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert len(copied) == 9
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


def test_every_step_is_one_that_the_script_knows(dockerfile: str) -> None:
    script = (DOCKER / "install.sh").read_text()
    steps = re.findall(r"^RUN \S*install\.sh (\w+)", dockerfile, re.M)
    assert steps == ["dependencies", "package", "gpu"]
    for step in steps:
        assert re.search(rf"^{step}\)", script, re.M)
    done = subprocess.run([str(DOCKER / "install.sh"), "all"], capture_output=True, text=True)
    assert done.returncode == 2 and "dependencies | gpu VERSION | package" in done.stderr


def test_what_the_rehearsal_imports_is_there() -> None:
    (program,) = re.findall(r"<<'PYTHON'\n(.*?)^PYTHON$", REHEARSAL.read_text(), re.M | re.S)
    kinds = ast.Import | ast.ImportFrom
    imports: list[ast.stmt] = [n for n in ast.parse(program).body if isinstance(n, kinds)]
    assert len(imports) == 4
    exec(compile(ast.Module(imports, []), str(REHEARSAL), "exec"), {})


ADDRESSES = {"address", "bind-host", "host", "bind-address"}


@pytest.fixture(scope="module")
def objects() -> dict[str, dict[str, Any]]:
    text = (DOCKER / "flink-deployment.yaml").read_text()
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"])


def flink_properties() -> dict[str, str]:
    """What `make test-flink` runs with, but for addresses and memory, as strings."""
    tested = yaml.safe_load((cluster.DATA / "config.yaml").read_text())
    given = {name: value for name, value in tested.items() if name.split(".")[-1] not in ADDRESSES}
    return as_strings(given)


def as_strings(properties: dict[str, Any]) -> dict[str, str]:
    """As Flink writes them."""
    return {k: str(v).lower() if v is True else str(v) for k, v in properties.items()}


def check_delay(properties: dict[str, Any]) -> None:
    """A job starts again when the idle workers of the one before are gone."""
    delay = int(properties["restart-strategy.fixed-delay.delay"].split()[0])
    assert delay > cluster.IDLE_MILLIS


def test_compose_has_the_tested_properties(services: dict[str, dict[str, Any]]) -> None:
    for name in ("jobmanager", "taskmanager-1", "taskmanager-2"):
        given = yaml.safe_load(services[name]["environment"]["FLINK_PROPERTIES"])
        assert as_strings(given).items() >= flink_properties().items()
        assert given["jobmanager.rpc.address"] == "jobmanager"
        assert services[name]["image"].startswith(f"flink:{install.FLINK}-")
        check_delay(given)


def test_paraloom_shares_a_folder_and_each_taskmanager_has_a_pool_on_its_loopback(
    services: dict[str, dict[str, Any]],
) -> None:
    ours = [each for each in services.values() if "build" in each]
    assert len(ours) == 3
    for service in ours:
        assert service["volumes"] == ["${PARALOOM_RUNS:-../runs}:/runs"]
        assert service["working_dir"] == "/runs"
        assert service["build"]["dockerfile"] == "docker/Dockerfile"
        assert (DOCKER / service["build"]["context"]).resolve() == ROOT
    managers = [name for name in services if name.startswith("taskmanager-")]
    pools = [service for name, service in services.items() if name.startswith("workers-")]
    assert len(managers) == len(pools) == 2
    assert {pool["network_mode"] for pool in pools} == {f"service:{name}" for name in managers}
    for pool in pools:
        _, _, module, port = pool["entrypoint"]
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
        assert port == "--service_port=50000"


def test_compose_names_what_is_there(services: dict[str, dict[str, Any]]) -> None:
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
    server = services["job-server"]
    assert server["image"] == f"apache/beam_flink{install.MINOR}_job_server:{install.BEAM}"
    (port,) = [a for a in server["command"] if a.startswith("--job-port=")]
    guide = (ROOT / "docs" / "clusters.md").read_text()
    assert f"--job_endpoint job-server:{port.removeprefix('--job-port=')}" in guide
    assert f"--flink_version {install.MINOR} " in guide
    assert f"--environment_cache_millis {cluster.IDLE_MILLIS} " in guide


def test_kubernetes_has_the_tested_properties(objects: dict[str, dict[str, Any]]) -> None:
    spec = objects["FlinkDeployment"]["spec"]
    process = "{}.memory.process.size".format
    given = spec["flinkConfiguration"] | {
        process(part): spec[name]["resource"]["memory"]
        for part, name in (("jobmanager", "jobManager"), ("taskmanager", "taskManager"))
    }
    assert given.items() >= flink_properties().items()
    check_delay(given)


def test_kubernetes_names_what_is_there(objects: dict[str, dict[str, Any]]) -> None:
    flink, service = objects["FlinkDeployment"], objects["Service"]
    assert flink["spec"]["image"].startswith(f"flink:{install.FLINK}-")
    assert flink["spec"]["flinkVersion"] == f"v{install.MINOR.replace('.', '_')}"
    (server,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert server["image"] == f"apache/beam_flink{install.MINOR}_job_server:{install.BEAM}"
    (job,) = objects["Job"]["spec"]["template"]["spec"]["containers"]
    rest = f"{flink['metadata']['name']}-rest:8081"  # the operator's name for it
    assert f"--flink-master={rest}" in server["args"] and f"--flink_master={rest}" in job["args"]
    endpoint = f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert f"--job_endpoint={endpoint}" in job["args"]
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    slots = int(flink["spec"]["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    replicas = flink["spec"]["taskManager"]["replicas"]
    assert f"--parallelism={slots * replicas}" in job["args"]
    assert f"--sdk_worker_parallelism={slots}" in job["args"]
    assert f"--environment_cache_millis={cluster.IDLE_MILLIS}" in job["args"]
    _, workers = flink["spec"]["taskManager"]["podTemplate"]["spec"]["containers"]
    _, _, module, port = workers["command"]
    assert (ROOT / f"{module.replace('.', '/')}.py").exists()
    assert f"--environment_config=localhost:{port.split('=')[1]}" in job["args"]
