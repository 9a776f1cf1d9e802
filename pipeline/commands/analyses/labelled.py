"""The labelled pairs of `--sts` and `--sick`."""

from models.embeddings.datasets.similarity import LabelledPairs, read_sick, read_sts
from models.errors import UserError


def labelled_pairs(command: str, sts: str | None, sick: str | None) -> list[LabelledPairs]:
    """Read the data sets that the options of a command name.

    Raises:
        UserError: neither is given, or a file cannot be read.
    """
    if not (sts or sick):
        raise UserError(f"{command}: nothing to evaluate on; give --sts DIR, --sick DIR or both")
    return [*(read_sts(sts) if sts else []), *(read_sick(sick) if sick else [])]
