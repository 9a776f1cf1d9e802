"""Fixtures of all tests, and hooks of pytest."""

import gc
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import settings

import paraloom.papers.systems  # noqa: F401  # registers tasks and encoders
from paraloom.beam_jobs.engine.options import connect
from tests import google_store
from tests.google_store import GoogleStore
from tests.object_store import BUCKET, object_store
from tests.once import made_once
from tests.quick_beam import make_quick
from tests.sample import DATA, HOW_TO_GET_DATA, real_data
from tests.small_model import train_small_model

NMT = "paraloom/nmt"
"""The folder of converted models in a user's cache."""

THREADS = torch.get_num_threads()

settings.register_profile("busy", settings.default, deadline=None)  # slow examples are no failures
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option that shuffles the tests, to find tests that depend on other tests."""
    parser.addoption(
        "--order-seed", metavar="N", help="shuffle files, and the tests in each: a seed or `random`"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Turn off garbage collection, which only costs time while modules are imported."""
    gc.disable()
    if config.option.order_seed == "random":  # one seed for all worker processes
        config.option.order_seed = str(Random().randrange(10**6))


def pytest_collection_finish() -> None:
    """Turn on garbage collection, but not for the objects that exist now."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark tests that read real corpora (`-m real_data`), and shuffle tests for `--order-seed`."""
    for item in items:
        if "data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.real_data)
    yield
    if seed := config.option.order_seed:
        random = Random(seed)
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        order = random.sample(list(files), len(files))
        items[:] = [item for path in order for item in random.sample(files[path], len(files[path]))]


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The user's cache in this test run. All tests share it, so a model is converted once."""
    folder = made_once(tmp_path_factory, "cache", lambda folder: (folder / NMT).mkdir(parents=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def quick_beam() -> Iterator[None]:
    """Halve the time in which small jobs start."""
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        yield


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Reset torch's number of threads after a test, because idle threads take CPU time."""
    yield
    torch.set_num_threads(THREADS)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Leave bytes that are not ASCII out of the names of tests. gzip's bytes contain the time, but
    all worker processes must collect the same names."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the seed that repeats the order of the tests, and the reasons of skipped tests."""
    if seed := config.option.order_seed:
        terminalreporter.write_line(f"order of the tests: --order-seed {seed}")
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(
        f"no real data: set {HOW_TO_GET_DATA}" if HOW_TO_GET_DATA in reason else reason
        for report in reports
        for reason in [str(report.longrepr[-1]).removeprefix("Skipped: ")]
    )
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real corpora (multi30k, sts, sick, ppdb). Without it, the test is skipped."""
    return real_data(DATA / "multi30k").parent


@pytest.fixture(scope="session")
def nmt_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Czech–English model, trained on the sample. Do not change it."""
    return made_once(tmp_path_factory, "small-model", train_small_model) / "model"


@pytest.fixture(scope="session")
def hub_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the folder of a family's small model. Do not change the folder."""

    def get(family: str) -> Path:
        def fill(folder: Path) -> None:
            from tests.hub_models import make  # imports torch and Transformers

            make(family, folder / "model")

        return made_once(tmp_path_factory, f"hub-{family}", fill) / "model"

    return get


@pytest.fixture(scope="session")
def parser(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small spaCy pipeline. Do not change it."""
    from tests.models.parsers import train_parser

    return train_parser(tmp_path_factory.mktemp("parser") / "parser")


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture(scope="session")
def s3() -> Iterator[list[str]]:
    """Beam options of an S3 emulator on this machine."""
    with object_store() as options:
        yield options


@pytest.fixture(scope="session")
def google() -> Iterator[GoogleStore]:
    """An emulator of Google's object store on this machine."""
    with google_store.google_store() as store:
        yield store


@pytest.fixture
def gs(google: GoogleStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Set the variables of Google's emulator. The Beam options are empty."""
    for name, value in google.env.items():
        monkeypatch.setenv(name, value)
    return []


@pytest.fixture
def empty_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a user's cache that contains only converted models."""
    (tmp_path / "cache" / NMT).parent.mkdir(parents=True)
    (tmp_path / "cache" / NMT).symlink_to(cache / NMT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def bucket(s3: list[str], empty_cache: None, tmp_path: Path) -> str:
    """A folder in S3. This process is connected to S3, and the cache has no copies."""
    connect(s3)
    return f"{BUCKET}/{tmp_path.name}"


@pytest.fixture
def google_bucket(gs: list[str], empty_cache: None, tmp_path: Path) -> str:
    """A folder in Google's store. Otherwise as `bucket`."""
    connect(gs)
    return f"{google_store.BUCKET}/{tmp_path.name}"


@pytest.fixture(params=["s3", "gs"])
def stored(request: pytest.FixtureRequest) -> tuple[str, list[str]]:
    """A folder in each kind of object store, as `bucket`, with the Beam options of the store."""
    bucket = "bucket" if request.param == "s3" else "google_bucket"
    return request.getfixturevalue(bucket), request.getfixturevalue(request.param)
