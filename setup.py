"""For tools that ask for a setup.py, such as Beam's --setup_file; pyproject.toml has the metadata."""

from setuptools import setup

setup()
