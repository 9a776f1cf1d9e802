"""A release is read again: its two configurations, and the metadata of its card."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.cards.metadata import front_matter
from paraloom.pipeline.publishing.check import check_card
from paraloom.pipeline.publishing.files import write_configurations
from tests.pipeline.publishing.test_release import WRITE, publish, said


def test_a_row_more_in_the_pairs_is_found(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def repeat_the_last_row(*arguments: Any) -> Any:
        found, total = write_configurations(*arguments)
        path = arguments[0] / found[1].splits[0].files[-1]
        rows = pq.read_table(path)
        pq.write_table(pa.concat_tables([rows, rows[-1:]]), path)
        return found, total

    monkeypatch.setattr(WRITE, repeat_the_last_row)
    assert publish(run) == 2
    assert "has more rows than the configuration full" in said(capsys)
    assert not (run / "release").exists()


KNOWN: dict[str, Any] = {
    "license": "mit",
    "language_creators": ["found"],
    "annotations_creators": ["no-annotation"],
    "multilinguality": ["translation"],
    "size_categories": ["100M<n<1B"],
    "source_datasets": ["extended"],
}
NAMED = {"license": "other", "license_name": "mine", "license_link": "LICENSE"}


@pytest.mark.parametrize("changes", [{}, NAMED, {"size_categories": ["n<1K"]}])
def test_a_card_of_the_hub(changes: dict[str, Any]) -> None:
    check_card(f"---\n{front_matter({**KNOWN, **changes})}---\n\nText.\n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"license": "MIT"}, "the licence MIT is not one that the Hub knows"),
        ({**NAMED, "license_name": ""}, "the licence other is not one"),
        ({**NAMED, "license_link": ""}, "the licence other is not one"),
        ({"size_categories": ["1B<n<9B"]}, "size_categories is 1B<n<9B, unknown to the Hub"),
        ({"source_datasets": ["extended", "x"]}, "source_datasets is extended, x, unknown"),
        ({"annotations_creators": ["me"]}, "annotations_creators is me, unknown"),
        ({"language_creators": ["no-annotation"]}, "language_creators is no-annotation, unknown"),
        ({"multilinguality": ["two"]}, "multilinguality is two, unknown"),
        ({"pretty_name": None}, "huggingface_hub does not read its metadata as written"),
    ],
)
def test_a_card_that_the_hub_does_not_know(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"^README\.md: .*{message}"):
        check_card(f"---\n{front_matter({**KNOWN, **changes})}---\n\nText.\n")
