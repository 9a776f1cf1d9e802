"""The type of the fixture `made_run`."""

from typing import Any, NamedTuple

import pyarrow as pa


class MadeRun(NamedTuple):
    """A run: its folder, the values of its manifest, and all scored pairs."""

    folder: str
    record: dict[str, Any]
    pairs: pa.Table
