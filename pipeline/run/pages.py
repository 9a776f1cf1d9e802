"""Writes the pages of a run: the report, and the cards of its corpora and encoders."""

from collections.abc import Iterator
from contextlib import suppress

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.files import CARD
from paraloom.pipeline.judging.judgments import judgments_digest
from paraloom.pipeline.pages import VERSION
from paraloom.pipeline.run.folder import current, read_json, report_path, restrict, write_json
from paraloom.pipeline.run.records import RunRecord
from paraloom.pipeline.stages import folder_of


def write_pages(folder: str, whole: RunRecord) -> None:
    """Write the report and the cards of the wanted stages, unless these pages are up to date."""
    record, report = restrict(whole, whole.wanted), report_path(folder)
    shown = {**whole.roll_up(), "wanted": None}
    key = content_key(VERSION, shown, whole.outdated, judgments_digest(folder))
    cards = list(_cards(folder, record))
    pages = [report, *(path for *_, path in cards)]
    made = storage.join(report.rpartition("/")[0], "pages.json")
    if _state(key, pages).items() <= (read_json(made) or {}).items():
        return
    from paraloom.pipeline.pages.cards import write_data_card, write_encoder_card
    from paraloom.pipeline.pages.report import document

    for page in (*pages, made):
        storage.remove_temporary(*page.rsplit("/", 1))
    for stage, place, _ in cards:
        (write_data_card if stage == "select" else write_encoder_card)(folder, record, place)
    storage.write_bytes(report, document(folder, current(whole)).encode())
    write_json(made, _state(key, pages))


def _cards(folder: str, record: RunRecord) -> Iterator[tuple[str, str, str]]:
    """For each card, yield the stage, the derived run's subfolder (or ""), and the card's path."""
    for place in ("", *record.config.places):
        paths = {stage: record.derived(place).path(stage) for stage in ("select", "embeddings")}
        there = {stage: of for stage, of in paths.items() if of in record.stages}
        for stage, path in there.items():
            files = storage.join(folder, folder_of(path))
            if stage == "embeddings":
                yield stage, place, storage.join(files, CARD)
            elif not place.startswith("rounds/"):
                yield stage, place, storage.join(files.rpartition("/")[0], CARD)


def _state(key: str, pages: list[str]) -> dict[str, str]:
    # The checksums of the pages reveal edits by people.
    def checksum(path: str) -> str:
        with suppress(storage.MissingError):
            return storage.digest(storage.read_bytes(path))
        return ""

    return {"key": key, **dict(zip(pages, storage.several(checksum, pages), strict=True))}
