"""Stages that say what `select` takes: those of `select.by`, and what it must keep out."""
