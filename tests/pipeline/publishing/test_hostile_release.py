"""`paraloom publish` where a run from elsewhere has a folder `release` that was not made here."""

from pathlib import Path

import pytest

from tests.pipeline.publishing.test_release import publish, said


@pytest.mark.parametrize("there", [True, False])
def test_a_link_out_of_the_run_is_refused(
    run: Path, tmp_path: Path, there: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere if there else tmp_path).mkdir(exist_ok=True)
    (run / "release").symlink_to(elsewhere)
    assert publish(run) == 2
    assert f"{run}/release: this link leads " in said(capsys)
    assert elsewhere.exists() == there and not [*elsewhere.glob("*")]
    assert publish(run, "--out", str(run / "release")) == 0  # the user's word
    assert (elsewhere / "SHA256SUMS").exists()
