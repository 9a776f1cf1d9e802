"""Releases of a run's corpus: files for Hugging Face's Hub, made on this machine.

`release` makes a folder, with the rows from `files`; `hub` sends it.
"""
