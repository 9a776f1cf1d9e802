"""The image files without a container engine: linted, and held against what they name."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from beam_jobs.runners.flink.install import FLINK, flink_version

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def dockerfile() -> str:
    return (DOCKER / "Dockerfile").read_text()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text()))


def test_the_dockerfile_passes_its_linter() -> None:
    hadolint = shutil.which("hadolint", path=Path(sys.executable).parent) or shutil.which(
        "hadolint"
    )
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run([hadolint, str(DOCKER / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", ["install.sh", "rehearse.sh"])
def test_the_scripts_are_sound_shell(script: str) -> None:
    assert subprocess.run(["sh", "-n", str(DOCKER / script)]).returncode == 0
    assert (DOCKER / script).stat().st_mode & 0o111


def test_there_are_targets_for_workers_and_for_a_launcher(dockerfile: str) -> None:
    assert re.findall(r"^FROM (\S+) AS (\w+)$", dockerfile, re.M) == [
        ("apache/beam_python3.11_sdk:${BEAM}", "cpu"),
        ("cpu", "gpu"),
        ("${TEMPLATES}", "templates"),
        ("cpu", "launcher"),
    ]


def test_worker_and_submitter_have_the_same_beam(dockerfile: str) -> None:
    (beam,) = re.findall(r"^ARG BEAM=(\S+)$", dockerfile, re.M)
    assert f"\napache-beam=={beam}\n" in LOCK


def test_everything_that_is_copied_is_there_and_reaches_the_builder(dockerfile: str) -> None:
    copied = [
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.M)
        for name in line.split()[:-1]
    ]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert len(copied) == 7
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


def test_every_step_is_one_that_the_script_knows(dockerfile: str) -> None:
    script = (DOCKER / "install.sh").read_text()
    steps = re.findall(r"^RUN \S*install\.sh (\w+)", dockerfile, re.M)
    assert steps == ["dependencies", "package", "gpu"]
    for step in steps:
        assert re.search(rf"^{step}\)", script, re.M)


def test_an_unknown_step_ends_with_its_usage() -> None:
    done = subprocess.run([str(DOCKER / "install.sh"), "all"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "dependencies | gpu VERSION | package" in done.stderr


def test_all_of_the_cluster_share_one_volume_at_one_place(compose: dict[str, Any]) -> None:
    assert list(compose["volumes"]) == ["runs"]
    for name, service in compose["services"].items():
        assert service["volumes"] == ["runs:/runs"], name


def test_each_taskmanager_has_a_pool_on_its_loopback(compose: dict[str, Any]) -> None:
    services = compose["services"]
    managers = [name for name in services if name.startswith("taskmanager-")]
    pools = [service for name, service in services.items() if name.startswith("workers-")]
    assert len(managers) == len(pools) == 2
    assert {pool["network_mode"] for pool in pools} == {f"service:{name}" for name in managers}
    for pool in pools:
        _, _, module, port = pool["entrypoint"]
        assert (ROOT / f"{module.replace('.', '/')}.py").exists()
        assert port == "--service_port=50000"
        assert pool["build"]["dockerfile"] == "docker/Dockerfile"
        assert (DOCKER / pool["build"]["context"]).resolve() == ROOT


def test_versions_are_those_of_the_local_cluster(compose: dict[str, Any], dockerfile: str) -> None:
    services = compose["services"]
    for name in ("jobmanager", "taskmanager-1", "taskmanager-2"):
        assert services[name]["image"].startswith(f"flink:{FLINK}-")
    (beam,) = re.findall(r"^ARG BEAM=(\S+)$", dockerfile, re.M)
    image = f"apache/beam_flink{flink_version()}_job_server:{beam}"
    assert services["job-server"]["image"] == image


def test_what_services_name_is_there(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", [])) <= set(services)
    ports = [a for a in services["job-server"]["command"] if a.startswith("--job-port=")]
    head = (DOCKER / "compose.yaml").read_text().split("name: paraloom")[0]
    assert f"--job_endpoint job-server:{ports[0].removeprefix('--job-port=')}" in head
    assert f"--flink_version {flink_version()} " in head
