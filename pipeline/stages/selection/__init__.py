"""Stages that choose deciles for `select.by`, and read the sentences of `select.exclude`."""
