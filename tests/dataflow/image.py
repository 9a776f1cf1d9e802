"""The worker image without a container engine: the Dockerfile's steps, followed in a folder.

Beam's own image is the one thing that is stood in for: by a virtual environment of this Python, and
the boot program, built from its Go module.
"""

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BOOT = "github.com/apache/beam/sdks/v2/python/container"


@dataclass(frozen=True)
class Image:
    """What a container of the image would start: a program and its environment."""

    python: Path
    entry_point: Path
    environment: dict[str, str]


@contextmanager
def image(target: str = "cpu") -> Iterator[Image]:
    """The image of the working tree, which no one else changes in the block.

    Packages stay in `~/.cache/paraloom/test-image-…` (7 GB), and are only brought up to date if the
    lock changed: remove that folder to begin from nothing.
    """
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    folder = Path.home() / ".cache" / "paraloom" / f"test-image-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _build(folder, target)


def _build(folder: Path, target: str) -> Image:
    binaries = folder / "opt" / "python" / "bin"
    if not (binaries / "python3").exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "opt" / "python"], check=True)
    boot = _boot(folder / "opt" / "apache" / "beam")
    kept = ("HOME", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
    environment = {name: value for name, value in os.environ.items() if name in kept}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    environment["PATH"] = f"{binaries}:/usr/bin:/bin"
    place, content, entry_point = folder, hashlib.sha256(), Path()
    for instruction, words in _instructions(target):
        if instruction == "ENV":
            environment |= dict(word.split("=", 1) for word in words)
        elif instruction == "WORKDIR":
            if place == folder:  # an image begins without an earlier checkout
                shutil.rmtree(folder / words[0].lstrip("/"), ignore_errors=True)
            place = folder / words[0].lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            for name in words[:-1]:
                _copy(ROOT / name, place / words[-1], content)
        elif instruction == "RUN":
            stamp = folder / f".{hashlib.sha256(' '.join(words).encode()).hexdigest()[:8]}"
            if not stamp.exists() or stamp.read_text() != content.hexdigest():
                stamp.unlink(missing_ok=True)
                subprocess.run(words, cwd=place, env=environment, check=True)
                stamp.write_text(content.hexdigest())
        elif instruction == "ENTRYPOINT":
            entry_point = folder / words[0].strip('[],"').lstrip("/")
    assert entry_point == boot
    return Image(binaries / "python3", entry_point, environment)


def _instructions(target: str) -> Iterator[tuple[str, list[str]]]:
    """The instructions of a target of the Dockerfile, up to the next one."""
    text = (ROOT / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    (found,) = re.findall(rf"^FROM \S+ AS {target}\n(.*?)(?=^FROM|\Z)", text, re.M | re.S)
    for line in found.splitlines():
        if line and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            yield instruction, shlex.split(rest)


def _copy(source: Path, target: Path, content: "hashlib._Hash") -> None:
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(exist_ok=True)
        target = Path(shutil.copy(source, target))
    for path in sorted(target.rglob("*")) if target.is_dir() else [target]:
        if path.is_file():
            content.update(path.relative_to(target.parent).as_posix().encode() + path.read_bytes())


def _boot(folder: Path) -> Path:
    """The boot program of the installed Beam."""
    version = metadata.version("apache-beam")
    made = folder / f"boot-{version}"
    if not made.exists():
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(folder)}
        subprocess.run(["go", "install", f"{BOOT}@v{version}"], env=environment, check=True)
        (folder / "container").rename(made)
    boot = folder / "boot"
    boot.unlink(missing_ok=True)
    boot.symlink_to(made.name)
    return boot


if __name__ == "__main__":
    with image() as built:
        print(built.entry_point)
