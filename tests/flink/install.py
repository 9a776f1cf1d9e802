"""Flink from PyPI and Beam's job server from Maven, as one folder of jars.

JobManager, TaskManagers and job server have the same jars in their class path, so that jobs are
submitted without jars. Sending jars takes longer than small jobs themselves, and every job would
leave a copy of Beam's classes in the TaskManagers.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from apache_beam.utils.subprocess_server import JavaHelper

from paraloom.models.files import atomic_folder, user_cache

FLINK = "1.19.3"
"""A version that Beam 2.77 has a runner for."""

MINOR = FLINK.rpartition(".")[0]
"""The version as Beam writes it."""

BEAM = "2.62.0"
"""Newest job server for this Flink that Maven can resolve completely. It works with the workers of
a newer Beam; `make test-flink` checks that."""


def installed() -> Path:
    """The folder with `lib/…` and `bash-java-utils.jar`, downloaded if it does not exist yet."""
    for program, package in ((java(), "openjdk-17-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise SystemExit(f"no {program} found: apt-get install {package}")
    target = user_cache() / f"flink-{FLINK}-beam-{BEAM}"
    if not target.is_dir():
        print(f"fetching Flink {FLINK} and Beam's job server to {target}")
        with atomic_folder(target) as folder:
            jars(folder).mkdir(parents=True)
            _fetch_flink(folder)
            _fetch_job_server(folder)
    return target


def jars(folder: Path) -> Path:
    """The folder of an installation's jars.

    Beam's job server sends all jars of its class path with every job, except those in a folder of
    this name.
    """
    return folder / "gradle" / "wrapper"


def java() -> str:
    """The path of the Java program."""
    return str(JavaHelper.get_java())


def _fetch_flink(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as wheel:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        what = ["--no-deps", "--no-compile", "--target", wheel, f"apache-flink-libraries=={FLINK}"]
        subprocess.run([*pip, *what], check=True)
        found = Path(wheel, "pyflink")
        for pattern in ("flink-dist-*.jar", "log4j-*.jar"):
            for jar in found.joinpath("lib").glob(pattern):
                jar.rename(jars(folder) / jar.name)
        found.joinpath("bin", "bash-java-utils.jar").rename(folder / "bash-java-utils.jar")


def _fetch_job_server(folder: Path) -> None:
    pom = Path(__file__).with_name("pom.xml")
    versions = [f"-Dflink={MINOR}", f"-Dbeam={BEAM}"]
    where = ["-DincludeScope=runtime", f"-DoutputDirectory={jars(folder)}"]
    batch = ["--batch-mode", "--quiet", "--strict-checksums", "--file", str(pom)]
    subprocess.run(["mvn", *batch, *versions, *where, "dependency:copy-dependencies"], check=True)
