"""Releases of a run's corpus: files for Hugging Face's Hub, made and checked on this machine.

`release` makes a folder, with the rows from `files` and what else belongs to them from
`provenance`; `check` reads it again; `hub` sends it.
"""
