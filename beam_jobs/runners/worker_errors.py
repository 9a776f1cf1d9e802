"""Errors of workers that a user can fix, from what a runner makes of them."""

import re

from paraloom.beam_jobs.io.shards import DamagedError
from paraloom.beam_jobs.io.storage import MissingError
from paraloom.models.errors import UserError

_ERRORS = {kind.__name__: kind for kind in (UserError, DamagedError, MissingError)}
_USER_ERROR = re.compile(rf"\b({'|'.join(_ERRORS)}): (.*?)(?: \[while running |\\n|\n|$)")


def user_error(text: str) -> UserError | None:
    r"""The error that a text of tracebacks holds.

    >>> user_error("Traceback …\nUserError: a: no such file [while running 'Score']")
    UserError('a: no such file')
    """
    found = _USER_ERROR.search(text)
    return _ERRORS[found[1]](found[2].strip()) if found else None
