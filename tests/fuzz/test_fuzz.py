"""A short selection; `make fuzz SECONDS=3600` is the long one."""

from pathlib import Path

import pytest

from tests.fuzz import model_targets, offline, targets
from tests.fuzz.harness import Found, run_case
from tests.run_helpers import Patch

CASES = {"bitext": 5, "checkpoint": 3, "other_model": 4}
MOST = 25


@pytest.mark.parametrize("name", targets.TARGETS)
def test_any_input_ends_well_or_in_one_line(
    tmp_path: Path, name: str, request: pytest.FixtureRequest, monkeypatch: Patch
) -> None:
    offline()
    if name == "checkpoint":
        model = request.getfixturevalue("nmt_model")
        monkeypatch.setattr(model_targets, "translation_model", lambda: model)
    for form in model_targets.FORMS if name == "other_model" else ():
        model_targets.model_of(form)
    found = Found()
    for number in range(CASES.get(name, MOST)):
        run_case(name, targets.TARGETS[name][0], f"short-{number}", tmp_path, found)
    assert not found.failures
    assert found.cases.total() == CASES.get(name, MOST)
