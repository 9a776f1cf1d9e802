"""A manifest whose parts do not fit together: one line instead of a traceback."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.run import write_pages
from tests.pipeline.report.made_run import MadeRun


def other_model(stages: dict[str, Any]) -> None:
    stages["evaluate"]["results"]["models"][0] = "other"


def other_data_set(stages: dict[str, Any]) -> None:
    groups = stages["evaluate"]["results"]["groups"]
    (found,) = next(iter(groups.values()))["data_sets"].values()
    found["models"] = {f"other {name}": of for name, of in found["models"].items()}


def other_score(stages: dict[str, Any]) -> None:
    deciles = stages["bucket"]["deciles"]
    deciles["other"] = deciles.pop("unigram_f1")


def too_few_deciles(stages: dict[str, Any]) -> None:
    del stages["bucket"]["deciles"]["unigram_f1"]["lowest"][4:]


@pytest.mark.parametrize("change", [other_model, other_data_set, other_score, too_few_deciles])
def test_parts_that_do_not_fit(
    made_run: MadeRun, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(made_run.folder, folder)
    record = copy.deepcopy(made_run.record)
    change(record["stages"])
    (folder / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match=r"its parts do not fit together \(.*\); remove") as error:
        write_pages(Manifest(str(folder)), str(folder), list(record["stages"]))
    assert str(error.value).startswith(f"{folder}/manifest.json: ")
    assert "\n" not in str(error.value)
