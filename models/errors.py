"""The exception for errors that a user can correct."""


class UserError(Exception):
    """An error outside the program: in a file, a row, a configuration key, on a disk.

    The message is one line that names the cause and, if there is one, the remedy. The command line
    prints it without a traceback and exits with code 2.

    >>> raise UserError("data/a.gz: no such file")
    Traceback (most recent call last):
    models.errors.UserError: data/a.gz: no such file
    """
