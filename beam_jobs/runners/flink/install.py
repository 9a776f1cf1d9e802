"""Flink from PyPI and Beam's job server from Maven, as one folder of jars.

JobManager, TaskManagers and job server have the same jars in their class path, so that jobs are
submitted without jars. Sending jars takes longer than small jobs themselves, and every job would
leave a copy of Beam's classes in the TaskManagers.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from apache_beam.utils.subprocess_server import JavaHelper

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, user_cache
from paraloom.models.printing import say

FLINK = "1.19.3"
"""A version that Beam 2.77 has a runner for."""

BEAM = "2.62.0"
"""Newest job server for this Flink that Maven can resolve completely. It works with the workers of
a newer Beam; `make test-flink` checks that."""

JAVA = 17


def flink_version(full: str = FLINK) -> str:
    """The version as Beam writes it.

    >>> flink_version("1.19.3")
    '1.19'
    """
    return ".".join(full.split(".")[:2])


def installed() -> Path:
    """The folder with `lib/…` and `bash-java-utils.jar`, downloaded if it does not exist yet."""
    java()
    target = user_cache() / f"flink-{FLINK}-beam-{BEAM}"
    if not target.is_dir():
        say(f"fetching Flink {FLINK} and Beam's job server to {target}")
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
    program: str | None = shutil.which(JavaHelper.get_java())
    hint = f"Flink needs Java {JAVA}: apt-get install openjdk-{JAVA}-jre-headless"
    if program is None:
        raise UserError(f"no Java found; {hint}")
    said = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) < JAVA:
        raise UserError(f"{program} is Java {version[1] if version else '?'}; {hint}")
    return program


def _fetch_flink(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as wheel:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        what = ["--no-deps", "--no-compile", "--target", wheel, f"apache-flink-libraries=={FLINK}"]
        _run([*pip, *what])
        found = Path(wheel, "pyflink")
        for pattern in ("flink-dist-*.jar", "log4j-*.jar"):
            for jar in found.joinpath("lib").glob(pattern):
                jar.rename(jars(folder) / jar.name)
        found.joinpath("bin", "bash-java-utils.jar").rename(folder / "bash-java-utils.jar")


def _fetch_job_server(folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise UserError("Beam's job server is fetched with Maven: apt-get install maven")
    pom = Path(__file__).with_name("pom.xml")
    versions = [f"-Dflink={flink_version()}", f"-Dbeam={BEAM}"]
    where = ["-DincludeScope=runtime", f"-DoutputDirectory={jars(folder)}"]
    batch = ["--batch-mode", "--quiet", "--strict-checksums", "--file", str(pom)]
    _run([maven, *batch, *versions, *where, "dependency:copy-dependencies"])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        why = said[0] if said else f"exit code {done.returncode}"
        raise UserError(f"{Path(command[0]).name}: {why}")
