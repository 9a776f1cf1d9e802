"""A run as the stages leave it, written without them: enough for its report and data card."""

import pytest

from tests.pipeline.report.made_run import MadeRun, make_run


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """Not to be changed: copy the folder first."""
    return make_run(tmp_path_factory.mktemp("made") / "captions")
