"""The scripts of this folder that are quick; `make test-faults` runs all of them."""

from __future__ import annotations

from pathlib import Path

import damaged_shard
import disk_full
import pytest
import submitter_killed
from ground import main


@pytest.mark.parametrize("script", [damaged_shard, disk_full, submitter_killed])
def test_the_corpus_is_that_of_an_undisturbed_run(script, nmt_model: Path, capsys):
    assert main(script.fault, script.__doc__) == 0, capsys.readouterr().out
