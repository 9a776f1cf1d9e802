"""Gated recurrent units: torch's, and with layer normalisation as in skip-thoughts' decoders.

Rows are taken by `index_select`: the gradient of `x[rows]` is added up in an order of its own.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from models.embeddings.encoders.prefix_trie import Tree, tree_of
from models.embeddings.encoders.ragged_batches import Tokens


class GRU(nn.Module):
    """A GRU over sentences in one direction (Cho et al. 2014, as torch computes it):

    r = σ(Wᵣ x + Uᵣ h + bᵣ),  z = σ(W_z x + U_z h + b_z),  g = tanh(W x + b + r ⊙ (U h + c))
    and the next state is z ⊙ h + (1 - z) ⊙ g.
    """

    def __init__(self, dim: int, hidden: int, *, backward: bool = False) -> None:
        super().__init__()
        self.weights = nn.GRU(dim, hidden)
        self.dim, self.reversed = hidden, backward

    def forward(self, tokens: Tokens, initial: Tensor | None = None) -> tuple[Tensor, Tree]:
        """The states at the nodes of the batch's tree, [nodes, hidden], and the tree.

        `initial` is the state before the first word of each sentence, [n, hidden]; None is zero.
        """
        tree = tree_of(tokens.places, tokens.offsets, backward=self.reversed, share=False)
        if not len(tree.words):
            return tokens.vectors.new_zeros(0, self.dim), tree
        places = torch.from_numpy(tree.words).to(tokens.vectors.device)
        inputs = tokens.vectors.index_select(0, places)
        packed = PackedSequence(inputs, torch.from_numpy(np.diff(tree.starts)))
        first = None if initial is None else _first(initial, tree, tokens.offsets).unsqueeze(0)
        return self.weights(packed, first)[0].data, tree

    def step(self, inputs: Tensor, states: Tensor) -> Tensor:
        """The states after one more word, [n, hidden], from the words' vectors, [n, dim]."""
        return torch.gru_cell(inputs, states, *self.weights.all_weights[0])


class NormalisedGRU(nn.Module):
    """A GRU whose sums are normalised, each by itself (Ba et al. 2016, supplement):

    (z, r) = σ(LN(W₂ x) + LN(U₂ h)),  g = tanh(LN(W x) + r ⊙ LN(U h))
    and the next state is z ⊙ h + (1 - z) ⊙ g (z and 1 - z change places there).
    """

    def __init__(self, dim: int, hidden: int, *, backward: bool = False) -> None:
        super().__init__()
        self.dim, self.reversed = hidden, backward
        self.from_words = nn.Linear(dim, 3 * hidden, bias=False)
        self.from_states = nn.Linear(hidden, 3 * hidden, bias=False)
        nn.init.uniform_(self.from_words.weight, -0.1, 0.1)
        for part in self.from_states.weight.data.chunk(3):
            nn.init.orthogonal_(part)
        sizes = (2 * hidden, hidden)
        self.word_norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes)
        self.state_norms = nn.ModuleList(nn.LayerNorm(size) for size in sizes)

    def forward(self, tokens: Tokens, initial: Tensor | None = None) -> tuple[Tensor, Tree]:
        """As that of `GRU`; without `initial`, sentences that begin alike share their states."""
        share = initial is None
        tree = tree_of(tokens.places, tokens.offsets, backward=self.reversed, share=share)
        device = tokens.vectors.device
        words, parents = (torch.from_numpy(of).to(device) for of in (tree.words, tree.parents))
        sums = self._normalised(self.from_words(tokens.vectors), self.word_norms)
        states: list[Tensor] = []
        for level, (start, end) in enumerate(zip(tree.starts, tree.starts[1:], strict=False)):
            if level:
                above = parents[start:end] - int(tree.starts[level - 1])
                before = states[-1].index_select(0, above)
            elif initial is not None:
                before = _first(initial, tree, tokens.offsets)
            else:
                before = sums[0].new_zeros(int(end), self.dim)
            gates, candidates = (of.index_select(0, words[start:end]) for of in sums)
            states.append(self._next(gates, candidates, before))
        return torch.cat(states) if states else sums[1][:0], tree

    def step(self, inputs: Tensor, states: Tensor) -> Tensor:
        """As that of `GRU`."""
        return self._next(*self._normalised(self.from_words(inputs), self.word_norms), states)

    def _next(self, gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
        own_gates, own = self._normalised(self.from_states(before), self.state_norms)
        keep, reset = torch.sigmoid(gates + own_gates).chunk(2, dim=1)
        return torch.lerp(torch.tanh(candidates + reset * own), before, keep)

    def _normalised(self, sums: Tensor, norms: nn.ModuleList) -> tuple[Tensor, Tensor]:
        """Of both gates together, [n, 2 hidden], and of the candidate, [n, hidden]."""
        gates, candidates = sums.split((2 * self.dim, self.dim), dim=1)
        return norms[0](gates), norms[1](candidates)


def _first(initial: Tensor, tree: Tree, offsets: np.ndarray) -> Tensor:
    """What is before the nodes on level 0 of a tree that shares nothing, from sentences' states."""
    full = np.flatnonzero(np.diff(offsets))
    ends = np.stack([offsets[full], offsets[full + 1] - 1])  # one of the two is read first
    sentences = np.empty(len(full), np.int64)
    sentences[tree.paths[ends].min(axis=0)] = full
    return initial.index_select(0, torch.from_numpy(sentences).to(initial.device))
