"""LSTMs with the cells of the papers, and networks around them."""

from collections.abc import Callable

from torch import nn

from paraloom.models.embeddings.encoders.lstm import LSTM
from paraloom.models.embeddings.encoders.ragged_batches import Input
from paraloom.models.embeddings.encoders.recurrent import Build, Pooling, Recurrent
from paraloom.models.embeddings.options import EmbeddingOptions


def cell_of(options: EmbeddingOptions) -> str:
    """The cell of the options, which may be the product's own and have none."""
    return getattr(options, "cell", "torch")


def recurrent(
    pooling: Pooling,
    *,
    both: bool = False,
    around: Callable[[LSTM, int], nn.Module] | None = None,
) -> Build:
    """A builder of LSTMs in one direction or both, or of networks `around` an LSTM and the length
    of a word vector."""

    def build(input: Input, options: EmbeddingOptions) -> Recurrent:
        cell, size = cell_of(options), options.hidden or input.dim
        if cell not in ("torch", "peephole"):
            raise ValueError(f"cell: {cell}, but only a GRU can be; an LSTM is torch or peephole")
        networks: list[nn.Module] = []
        for backward in (False, True)[: 1 + both]:
            lstm = LSTM(input.dim, size, peepholes=cell == "peephole", backward=backward)
            networks.append(around(lstm, input.dim) if around else lstm)
        return Recurrent(input, networks, pooling, options.combine)

    return build
