"""The training tasks of the papers' other systems; importing this package makes them known."""

from paraloom.models.embeddings.tasks import TASKS, train

__all__ = ["train"]

TASKS |= {name: f"{__name__}.{name}" for name in ("malstm", "phrases", "context")}
