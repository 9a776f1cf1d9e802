"""GRUs, and builders of recurrent encoders.

`index_select` is used throughout, because the gradient of `x[rows]` is not deterministic.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from paraloom.models.embeddings.encoders.lstm import LSTM
from paraloom.models.embeddings.encoders.prefix_trie import PrefixTrie, build_trie
from paraloom.models.embeddings.encoders.ragged_batches import Input, RaggedBatch, vectors_at
from paraloom.models.embeddings.encoders.recurrent import Build, Pooling, Recurrent
from paraloom.models.embeddings.options import EmbeddingOptions


class GRU(nn.Module):
    """torch's GRU over sentences in one direction.

        r = σ(Wᵣ x + Uᵣ h + bᵣ),  z = σ(W_z x + U_z h + b_z),  g = tanh(W x + b + r ⊙ (U h + c))

    The next state is z ⊙ h + (1 - z) ⊙ g.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.weights = nn.GRU(dim, hidden)
        self.dim = hidden

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, PrefixTrie]:
        """Return the states at the nodes of the batch's trie, [nodes, hidden], and the trie."""
        vectors, rows, offsets = batch
        trie = build_trie(rows, offsets, share=False)
        if not len(trie.rows):
            return vectors.new_zeros(0, self.dim), trie
        inputs = vectors_at(vectors, trie.rows)
        packed = PackedSequence(inputs, torch.from_numpy(np.diff(trie.starts)))
        return self.weights(packed)[0].data, trie


class SteppedGRU(nn.Module):
    """A GRU over the prefix trie of a batch. Subclasses define the equations."""

    dim: int

    def from_inputs(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return the words' terms: [n, 2 hidden] for gates, and [n, hidden] for candidates."""
        raise NotImplementedError

    def following(self, gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
        """Return the states after `before`, [n, hidden], given the output of `from_inputs`."""
        raise NotImplementedError

    def forward(
        self, batch: RaggedBatch, initial: Tensor | None = None
    ) -> tuple[Tensor, PrefixTrie]:
        """Return the states at the nodes of a trie, and the trie. `initial` is [n, hidden]."""
        vectors, batch_rows, offsets = batch
        trie = build_trie(batch_rows, offsets, share=initial is None)
        rows, parents = (torch.from_numpy(x).to(vectors.device) for x in (trie.rows, trie.parents))
        terms = self.from_inputs(vectors)
        states: list[Tensor] = []
        for level, (start, end) in enumerate(zip(trie.starts, trie.starts[1:], strict=False)):
            if level:
                above = parents[start:end] - int(trie.starts[level - 1])
                before = states[-1].index_select(0, above)
            elif initial is not None:
                before = _first(initial, trie, offsets)
            else:
                before = terms[0].new_zeros(int(end), self.dim)
            gates, candidates = (x.index_select(0, rows[start:end]) for x in terms)
            states.append(self.following(gates, candidates, before))
        return torch.cat(states) if states else terms[1][:0], trie

    def step(self, inputs: Tensor, states: Tensor) -> Tensor:
        """Return the states, [n, hidden], after a step that reads word vectors, [n, dim]."""
        return self.following(*self.from_inputs(inputs), states)


class ChoGRU(SteppedGRU):
    """The GRU of Cho et al. 2014, in the form of Zhou, Huang & Ji (2017, 2.2).

        z = σ(W_z x + U_z h),  r = σ(Wᵣ x + Uᵣ h),  g = tanh(W x + U (r ⊙ h))

    The next state is (1 - z) ⊙ h + z ⊙ g. torch's GRU multiplies r with U h instead.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.dim = hidden
        self.from_words = nn.Linear(dim, 3 * hidden, bias=False)  # z, r, g
        self.gates_from_states = nn.Linear(hidden, 2 * hidden, bias=False)
        self.candidate_from_states = nn.Linear(hidden, hidden, bias=False)

    def from_inputs(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return W_z x and Wᵣ x in one tensor, and W x in another tensor."""
        gates, candidates = torch.split(self.from_words(vectors), [2 * self.dim, self.dim], dim=1)
        return gates, candidates

    def following(self, gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
        """Return the next states."""
        update, reset = torch.sigmoid(gates + self.gates_from_states(before)).chunk(2, dim=1)
        candidates = torch.tanh(candidates + self.candidate_from_states(reset * before))
        return torch.lerp(before, candidates, update)


class NormalisedGRU(SteppedGRU):
    """A GRU with layer normalisation LN (Ba et al. 2016, supplement).

        (z, r) = σ(LN(W₂ x) + LN(U₂ h)),  g = tanh(LN(W x) + r ⊙ LN(U h))

    The next state is z ⊙ h + (1 - z) ⊙ g. In the paper, z and 1 - z are exchanged.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.dim = hidden
        self.from_words = nn.Linear(dim, 3 * hidden, bias=False)
        self.from_states = nn.Linear(hidden, 3 * hidden, bias=False)
        nn.init.uniform_(self.from_words.weight, -0.1, 0.1)
        for block in self.from_states.weight.data.chunk(3):
            nn.init.orthogonal_(block)
        sizes = (2 * hidden, hidden)
        self.word_norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes)
        self.state_norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes)

    def from_inputs(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return LN(W₂ x) and LN(W x)."""
        return self._normalised(self.from_words(vectors), self.word_norms)

    def following(self, gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
        """Return the next states."""
        own_gates, own = self._normalised(self.from_states(before), self.state_norms)
        keep, reset = torch.sigmoid(gates + own_gates).chunk(2, dim=1)
        return torch.lerp(torch.tanh(candidates + reset * own), before, keep)

    def _normalised(self, sums: Tensor, norms: nn.ModuleList) -> tuple[Tensor, Tensor]:
        gates, candidates = torch.split(sums, [2 * self.dim, self.dim], dim=1)
        return norms[0](gates), norms[1](candidates)


def _first(initial: Tensor, trie: PrefixTrie, offsets: NDArray[np.int64]) -> Tensor:
    full = np.flatnonzero(np.diff(offsets))
    sentences = np.empty(len(full), np.int64)
    sentences[trie.paths[offsets[full]]] = full
    return initial.index_select(0, torch.from_numpy(sentences).to(initial.device))


def cell_of(options: EmbeddingOptions) -> str:
    """Return the option `cell`. Its value is torch if the options are no `SystemOptions`."""
    return getattr(options, "cell", "torch")


def recurrent(
    pooling: Pooling,
    *,
    both: bool = False,
    around: Callable[[LSTM, int], nn.Module] | None = None,
) -> Build:
    """Return a builder of encoders with an LSTM in one direction, or in `both` directions.

    `around` makes a network from an LSTM and the dimension of word vectors.
    """

    def build(input: Input, options: EmbeddingOptions) -> Recurrent:
        cell, size = cell_of(options), options.hidden or input.dim
        if cell not in ("torch", "peephole"):
            raise ValueError(f"cell: {cell} is for a GRU; an LSTM can be torch or peephole")
        networks: list[nn.Module] = []
        for backward in (False, True)[: 1 + both]:
            lstm = LSTM(input.dim, size, peepholes=cell == "peephole", backward=backward)
            networks.append(around(lstm, input.dim) if around else lstm)
        return Recurrent(input, networks, pooling, options.combine)

    return build


def gru(input: Input, options: EmbeddingOptions) -> Recurrent:
    """Build an encoder with a GRU in one direction."""
    kinds: dict[str, type[GRU | SteppedGRU]]
    kinds = {"torch": GRU, "cho": ChoGRU, "normalised": NormalisedGRU}
    if (cell := cell_of(options)) not in kinds:
        raise ValueError(f"cell: {cell} is for an LSTM; a GRU can be torch, cho or normalised")
    return Recurrent(input, [kinds[cell](input.dim, options.hidden or input.dim)], "last")
