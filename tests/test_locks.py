"""The locks: what pyproject.toml names is in both, at the same versions, from no special index."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pins(lock: str) -> set[str]:
    """The lines `name==version [; marker]` of a lock."""
    lines = (ROOT / lock).read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found
    return re.sub(r"[._-]+", "-", found[0]).lower()


@pytest.fixture
def declared() -> dict[str, list[str]]:
    """What pyproject.toml requires: to run, with all extras, and for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    names = everything.removeprefix("paraloom[").rstrip("]").split(",")
    assert {*names, "all", "dev", "gpu"} == set(extras)
    run = [*project["dependencies"], *(part for name in names for part in extras[name])]
    return {"run": run, "dev": extras["dev"]}


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_is_nothing_but_pins(lock: str) -> None:
    assert len(pins(lock)) > 100
    for line in pins(lock):
        assert re.fullmatch(r"[a-z0-9-]+==[^\s/:;]+( ; .+)?", line)


def test_tests_run_with_the_versions_that_users_have() -> None:
    assert pins("requirements.lock") < pins("requirements-dev.lock")


def test_what_setup_requires_is_locked(declared: dict[str, list[str]]) -> None:
    run = {name(line) for line in pins("requirements.lock")}
    dev = {name(line) for line in pins("requirements-dev.lock")}
    assert {name(requirement) for requirement in declared["run"]} - {"paraloom"} <= run
    assert {name(requirement) for requirement in declared["dev"]} <= dev
    assert not run & {"moto", "pytest", "ruff"}
