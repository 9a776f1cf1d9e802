"""For tools that ask for a setup.py, such as Beam's --setup_file; see pyproject.toml."""

from setuptools import setup

setup()
