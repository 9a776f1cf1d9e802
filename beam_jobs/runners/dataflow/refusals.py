"""What Dataflow says when it refuses a job or ends it, in one line that says what to do.

For most of it the service has no codes: its wordings are what is known.
"""

import re
from collections.abc import Sequence

from paraloom.beam_jobs.runners.worker_errors import user_error
from paraloom.models.errors import UserError


class ExhaustedError(UserError):
    """A zone or a quota is exhausted: the same request may succeed later."""


_EXHAUSTED = re.compile(
    r"resource_?pool_?exhausted|not have enough resources available|is currently unavailable in"
    r"|resource_exhausted|quota_exceeded|quota .*exceeded|exceeded limit|too many .*jobs",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"limit: 0(\.0)?\b", re.IGNORECASE)  # a quota that no waiting changes
_NOISE = re.compile(
    r"^.*JOB_MESSAGE_\w+: |^\d{3} (?:[A-Z]+ https?://\S+: )?|^[A-Z]+ https?://\S+: "
    r"|\([0-9a-f]{4,}\): |Please refer to \S+ for help troubleshooting. |^.*Root cause: "
)
_KEPT = "finished shards are kept"
_REMEDIES = {
    r"actAs|act as service account": "you need the role roles/iam.serviceAccountUser on the "
    "workers' service account (--service_account_email)",
    r"pull.*image|image.*pull|manifest.*(unknown|not found)": "is --sdk_container_image in the "
    "registry, and may the workers' service account read it (roles/artifactregistry.reader)?",
    r"out of memory|\boom\b": "take machines with more memory (--machine_type), or fewer threads "
    f"(--number_of_worker_harness_threads); {_KEPT}",
    r"no space left": f"take larger disks (--disk_size_gb); {_KEPT}",
    r"lost contact": f"workers died, often for want of memory (--machine_type); {_KEPT}",
    r"quota|exceeded limit": "ask for a larger quota, or use other machines (--machine_type, "
    "--region)",
    r"permission|forbidden|denied|credential|unauth": "docs/clusters.md has the roles that you and "
    "the workers' service account need",
}


def refusal(what: str, said: Sequence[str]) -> UserError:
    """The error for the messages of the service; if a worker raised one, that error.

    Args:
        what: the thing that is refused.
    """
    if error := user_error("\n".join(said)):
        return error
    for message in said:
        if _EXHAUSTED.search(message) and not _NOTHING.search(message):
            return ExhaustedError(f"{what}: {_line(message)}")
    for words, remedy in _REMEDIES.items():
        for message in said:
            if re.search(words, message, re.IGNORECASE):
                return UserError(f"{what}: {_line(message)}; {remedy}")
    telling = [message for message in said if "Traceback" in message] or said or ["it says nothing"]
    return UserError(f"{what}: {_line(telling[-1])}")


def _line(message: str) -> str:
    r"""A message without the service's own numbers; of a traceback the last line.

    >>> _line("Traceback (most recent call last):\n  File …\nValueError: 3 [while running 'Score']")
    "ValueError: 3 (in 'Score')"
    >>> _line("POST http://host/v1b3: (a12f): Not possible. Causes: (b34e): No such image.")
    'Not possible. Causes: No such image.'
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        lines = lines[-1:]
    text = _NOISE.sub("", " ".join(lines))
    text = re.sub(r"\[while running ('[^']*')\]", r"(in \1)", text)
    return text if len(text) <= 400 else f"{text[:400]}…"
