"""The folders here are the packages `paraloom.models`, …; the rest is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {"models": ".", "beam_jobs": ".", "pipeline": ".", "papers": "benchmarks"}

setup(
    packages=["paraloom"]
    + [
        f"paraloom.{name}"
        for folder, where in FOLDERS.items()
        for name in find_packages(where, include=[folder, f"{folder}.*"])
    ],
    package_dir={f"paraloom.{folder}": f"{where}/{folder}" for folder, where in FOLDERS.items()},
)
