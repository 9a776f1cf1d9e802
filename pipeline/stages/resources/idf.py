"""Stage `idf`: makes the inverse document frequencies for the scorer `mean_idf`."""

from pathlib import Path
from typing import Any

from paraloom.beam_jobs import VERSIONS
from paraloom.beam_jobs.engine.shards import units
from paraloom.models.files import atomic_folder, digest
from paraloom.pipeline.run.records import IdfRecord
from paraloom.pipeline.run.run import Run

depends_on = ("ingest",)
resource = "compact"


def fingerprint(run: Run) -> Any:
    """Return the digest of the file `score.idf`, or the language and the version of the job."""
    file = run.config.score.idf
    return digest(file) if file else run.with_language(["counted", VERSIONS["idf"]])


def make(run: Run, key: str) -> IdfRecord:
    """Read IDF from a file, or count words in all references that `ingest` accepted."""
    from paraloom.beam_jobs import idf
    from paraloom.models.text.idf import compact_idf, write_idf

    file = run.config.score.idf
    counts = None
    if not file:
        work = units(run.shards("ingest"), key)
        counts = idf.run(work, run.folder("idf"), run.arguments, language=run.language)
    with atomic_folder(run.local_folder("idf")) as folder:
        text = Path(file) if file else folder / "idf.txt"
        if counts is not None:
            write_idf(counts, text)
        words = compact_idf(text, folder / "compact")
    record = IdfRecord(words=words, digest=run.publish("idf"))
    if counts is not None:
        record.documents = counts.documents
    return record
