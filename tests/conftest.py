"""Where the tests find real data, and what they do when it is not there."""

import gc
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import settings

import paraloom.papers.systems  # noqa: F401  # its tasks and encoders are known in every order of tests
from paraloom.beam_jobs.engine.options import connect
from tests import google_store
from tests.google_store import GoogleStore
from tests.object_store import BUCKET, object_store
from tests.once import made_once
from tests.quick_beam import make_quick
from tests.sample import DATA, HOW_TO_GET_DATA, real_data
from tests.small_model import train_small_model

NMT = "paraloom/nmt"
"""Where converted models are in a user's cache."""

THREADS = torch.get_num_threads()

settings.register_profile("busy", settings.default, deadline=None)  # a busy machine is no failure
settings.load_profile("busy")


def pytest_addoption(parser: pytest.Parser) -> None:
    """An order of the tests in which what one leaves behind meets others than usual."""
    parser.addoption(
        "--order-seed", metavar="N", help="run files, and the tests of each, shuffled: N, or random"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Modules leave no garbage, and to visit all their objects again and again takes long."""
    gc.disable()
    if config.option.order_seed == "random":  # worker processes get the number
        config.option.order_seed = str(Random().randrange(10**6))


def pytest_collection_finish() -> None:
    """What is there now stays."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Mark the tests that read real corpora: `pytest -m real_data` runs them alone. Shuffle."""
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
    """The user's cache in this test run: a model is converted once for all tests."""
    folder = made_once(tmp_path_factory, "cache", lambda folder: (folder / NMT).mkdir(parents=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def quick_beam() -> Iterator[None]:
    """Small jobs start in half the time."""
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        yield


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Torch has as many threads as before the tests: those that one test asks for wait busily."""
    yield
    torch.set_num_threads(THREADS)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes that are no text, such as gzip's with its times, do not name a test: all processes
    that run the tests must collect the same."""
    return argname if isinstance(val, bytes) and not val.isascii() else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how to run the tests in this order again; what was skipped, and for want of what."""
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
    """The folder of real corpora (multi30k, sts, sick, ppdb); without it tests are skipped."""
    return real_data(DATA / "multi30k").parent


@pytest.fixture(scope="session")
def nmt_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model, Czech to English, trained on the sample; do not change it."""
    return made_once(tmp_path_factory, "small-model", train_small_model) / "model"


@pytest.fixture(scope="session")
def hub_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small model of a family, in Hugging Face's format; do not change it."""

    def get(family: str) -> Path:
        def fill(folder: Path) -> None:
            from tests.hub_models import make  # imports torch and Transformers

            make(family, folder / "model")

        return made_once(tmp_path_factory, f"hub-{family}", fill) / "model"

    return get


@pytest.fixture(scope="session")
def parser(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small pipeline of spaCy; do not change it."""
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
    """Beam options that lead to an S3 on loopback."""
    with object_store() as options:
        yield options


@pytest.fixture(scope="session")
def google() -> Iterator[GoogleStore]:
    """A gs:// on loopback."""
    with google_store.google_store() as store:
        yield store


@pytest.fixture
def gs(google: GoogleStore, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Beam options that lead to a gs:// on loopback: none, the environment does."""
    for name, value in google.env.items():
        monkeypatch.setenv(name, value)
    return []


@pytest.fixture
def empty_cache(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache of the user's, but for converted models."""
    (tmp_path / "cache" / NMT).parent.mkdir(parents=True)
    (tmp_path / "cache" / NMT).symlink_to(cache / NMT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def bucket(s3: list[str], empty_cache: None, tmp_path: Path) -> str:
    """A folder in an S3 that this process is connected to, and an empty cache of copies."""
    connect(s3)
    return f"{BUCKET}/{tmp_path.name}"


@pytest.fixture
def google_bucket(gs: list[str], empty_cache: None, tmp_path: Path) -> str:
    """The same in a gs://."""
    connect(gs)
    return f"{google_store.BUCKET}/{tmp_path.name}"


@pytest.fixture(params=["s3", "gs"])
def stored(request: pytest.FixtureRequest) -> tuple[str, list[str]]:
    """A folder in each kind of object store, as `bucket`, and the Beam options that lead there."""
    bucket = "bucket" if request.param == "s3" else "google_bucket"
    return request.getfixturevalue(bucket), request.getfixturevalue(request.param)
