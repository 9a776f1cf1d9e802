"""The one exception that a user can cause."""


class UserError(Exception):
    """Something outside the program is wrong: a file, a row, a key, a disk.

    The message is one line that names the thing at fault and, where there is one, the remedy.
    The command line prints it without a traceback and exits with code 2.

    >>> raise UserError("data/a.gz: no such file")
    Traceback (most recent call last):
    models.errors.UserError: data/a.gz: no such file
    """
