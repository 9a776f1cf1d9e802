"""The folders at the top are the packages `paraloom.models`, …; the rest is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("models", "beam_jobs", "pipeline")

setup(
    packages=["paraloom"]
    + [
        f"paraloom.{name}"
        for folder in FOLDERS
        for name in find_packages(include=[folder, f"{folder}.*"])
    ],
    package_dir={f"paraloom.{folder}": folder for folder in FOLDERS},
)
