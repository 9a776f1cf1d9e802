"""Rows of a table of results; rows of what models cost, and the same for programs."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple


class ResultRow(NamedTuple):
    """A row of a table of results."""

    head: str
    pairs: str
    cells: list[str]  # [models]
    kind: Literal["", "mean", "missing"] = ""


class Cost(NamedTuple):
    """What a model costs on this machine."""

    speed: float  # sentences/s
    batch_size: int  # with which this speed was measured
    size: int  # bytes on disk
    memory: int | None  # bytes that it adds to a process; None if they are unknown


def cost_rows(costs: Sequence[Cost]) -> list[ResultRow]:
    """Speed, size and memory [models]; no row if they were not measured."""
    if not costs:
        return []
    return [
        ResultRow("sentences/s", "", [f"{each.speed:,.0f}" for each in costs]),
        ResultRow("batch size", "", [f"{each.batch_size:,}" for each in costs]),
        ResultRow("size on disk, MB", "", [megabytes(each.size) for each in costs]),
        ResultRow("memory, MB", "", [megabytes(each.memory) for each in costs]),
    ]


def costs_json(models: Sequence[str], costs: Sequence[Cost], how: str) -> dict[str, Any]:
    """The costs for programs, by model; sizes in bytes."""
    return {
        "how": how,
        "models": {
            name: {
                "sentences_per_second": round(each.speed, 1),
                "batch_size": each.batch_size,
                "bytes_on_disk": each.size,
                "memory_bytes": each.memory,
            }
            for name, each in zip(models, costs, strict=True)
        },
    }


def megabytes(size: int | None) -> str:
    """Bytes in MB."""
    return "–" if size is None else f"{size / 1e6:,.1f}"
