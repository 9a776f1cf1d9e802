"""The scripts of this folder as tests, and short forms of the random ones that run always."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.faults import cluster_killed, growing, object_storage, random_changes, random_kills
from tests.faults.ground import Ground, main
from tests.once import made_once

SLOW, FLINK = pytest.mark.faults, pytest.mark.flink


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory, nmt_model: Path) -> Path:
    """A finished run of the scripts' input; do not change it."""

    def make(folder: Path) -> None:
        ground = Ground(folder, nmt_model)
        ground.undisturbed()
        assert ground.ok

    return made_once(tmp_path_factory, "undisturbed", make) / "undisturbed"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(random_kills, marks=SLOW),
        pytest.param(random_changes, marks=SLOW),
        pytest.param(growing, marks=SLOW),
        pytest.param(object_storage, marks=SLOW),
        pytest.param(cluster_killed, marks=FLINK),
    ],
    ids=lambda script: script.__name__.rpartition(".")[2],
)
def test_the_corpus_is_that_of_an_undisturbed_run(
    script: ModuleType, nmt_model: Path, whole: Path
) -> None:
    code = main(script.fault, script.__doc__, model=nmt_model, whole=whole)
    assert code == 0  # pytest shows what it printed


def test_a_few_random_kills(nmt_model: Path, whole: Path, tmp_path: Path) -> None:
    """One of each kind that ended good sentences; see `random_kills` for more."""
    ground = Ground(tmp_path, nmt_model, whole=whole)
    random_kills.kill(ground, 3, 1, ("Ctrl-C", "SIGKILL of the command", "SIGTERM of the group"))
    assert ground.ok


def test_a_few_random_changes(nmt_model: Path, tmp_path: Path) -> None:
    """Commands for early stages, none killed; see `random_changes` for more."""
    ground = Ground(tmp_path, nmt_model)
    random_changes.change(ground, 2, 2, ("ingest", "score", "bucket"), kills=0)
    assert ground.ok
