"""Stop a job that rejects too large a share of its rows.

While a job runs, the launcher counts the rows of finished units. To stop the job, the launcher
writes a message into the job's folder. Workers look for the message before each unit. Finished
units are kept, so that the user can raise the limit and resume.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import RECEIPTS, Receipt, read_receipt
from paraloom.beam_jobs.storage import MissingError
from paraloom.models.errors import UserError, one_line

ENOUGH_ROWS = 1_000
"""A running job is checked from this number of rows on, because early shards may be bad by chance.
A finished job is always checked."""

_MESSAGE = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The largest share of its rows that a job may reject."""

    share: float  # `max_rejected` in the configuration
    ignored: tuple[str, ...] = ()  # prefixes of reasons that do not count as rejections
    question: str = ""  # hint at a likely cause, for the message


@dataclass(slots=True)
class _Rejections:
    job: str
    limit: Limit
    rows: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    files: dict[str, str] = field(default_factory=dict)  # reason -> a file with rejected rows

    def add(self, receipt: Receipt) -> None:
        self.rows += receipt.rows_in
        for reason, rows in receipt.rejected.items():
            if not reason.startswith(self.limit.ignored):
                self.reasons[reason] += rows
                shards = (*receipt.rejected_shards, *receipt.shards)
                self.files.setdefault(reason, shards[0].path if shards else receipt.name)

    def check(self, enough: int) -> None:
        """Raise UserError if at least `enough` rows are counted and too many are rejected."""
        rejected = self.reasons.total()
        if self.rows < enough or rejected <= self.limit.share * self.rows:
            return
        share = f"({rejected / self.rows:.1%})"
        what = f"{rejected:,} of {self.rows:,} rows are rejected {share}"
        if rejected == self.rows:
            what = f"none of {self.rows:,} rows can be used"
        # If all rows of a finished job (`enough` is 0) are rejected, a higher limit is no remedy.
        remedy = ", or raise max_rejected" * (enough > 0 or rejected < self.rows)
        reason, rows = self.reasons.most_common(1)[0]
        question = f"{self.limit.question} " if self.limit.question else ""
        raise UserError(
            f"{self.job}: {what}, and max_rejected is {self.limit.share:g}; most frequent reason: "
            f"{one_line(reason)} ({rows:,} rows), see {self.files[reason]}; {question}remove the "
            f"cause{remedy}; then the same command resumes"
        )


class RejectionWatch:
    """Checks a job's rejected rows against the limit, while the job runs and when it ends."""

    def __init__(self, job: str, folder: str, limit: Limit | None) -> None:
        self._job, self._limit = job, limit or Limit(share=1)
        self._folder, self._message = folder, storage.join(folder, _MESSAGE)
        self._seen: set[str] = set()
        self._found = _Rejections(job, self._limit)
        self.end()  # a killed command may have left a message

    def look(self) -> None:
        """Count the rows of newly finished units; stop the job if it rejects too many rows."""
        if self._limit.share == 1:
            return
        for name in set(storage.names(storage.join(self._folder, RECEIPTS))) - self._seen:
            self._seen.add(name)
            if receipt := read_receipt(self._folder, name.removesuffix(".json")):
                self._found.add(receipt)
        try:
            self._found.check(ENOUGH_ROWS)
        except UserError as error:
            storage.write_bytes(self._message, str(error).encode())

    def end(self) -> None:
        """Remove the message to the workers."""
        storage.remove(self._message)

    def check_all(self, receipts: Iterable[Receipt]) -> None:
        """Check all units of the finished job; raise UserError if too many rows are rejected."""
        found = _Rejections(self._job, self._limit)
        for receipt in receipts:
            found.add(receipt)
        found.check(0)


def check_share(job: str, limit: Limit, rows: int, reasons: Counter[str], where: str) -> None:
    """Check the rejected rows of one unit against the job's limit, while the unit is processed."""
    _Rejections(job, limit, rows, reasons, dict.fromkeys(reasons, where)).check(ENOUGH_ROWS)


def check_not_stopped(folder: str) -> None:
    """Raise the launcher's message as a UserError if the job was stopped."""
    try:
        message = storage.read_bytes(storage.join(folder, _MESSAGE)).decode()
    except MissingError:
        return
    raise UserError(message)
