"""Stages that say what `select` takes, by `select.by`, and what it must keep out."""
