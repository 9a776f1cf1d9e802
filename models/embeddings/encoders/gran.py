"""Gated recurrent averaging networks: word vectors through gates that an LSTM opens (W&G 3.1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.embeddings.encoders.lstm import LSTM
from models.embeddings.encoders.prefix_trie import Tree
from models.embeddings.encoders.ragged_batches import Tokens


class GRAN(nn.Module):
    """One output aₜ per word, [nodes, dim], from its vector xₜ and the LSTM's state hₜ.

    With gates σ = σ(Wₓ xₜ + Wₕ hₜ + b), as in the authors' code:

        GRAN    aₜ = xₜ ⊙ σ                             the sentence is the mean of aₜ  (Eq. 1)
        GRAN-2  aₜ = hₜ ⊙ σ                             the mean
        GRAN-3  aₜ = aₜ₋₁ ⊙ σ + xₜ ⊙ σ'                 the last
        GRAN-4  the same; both gates see aₜ₋₁, too      the last
        GRAN-5  aₜ = xₜ ⊙ σ + hₜ ⊙ σ'                   the mean

    So open gates make GRAN a Word Avg; gates (1, 0) make GRAN-5 a Word Avg, (0, 1) an LSTM Avg.
    """

    def __init__(self, lstm: LSTM, dim: int, variant: int) -> None:
        super().__init__()
        if lstm.dim != dim:
            raise ValueError(f"hidden: {lstm.dim}, but a GRAN needs the length of a word ({dim})")
        self.lstm, self.dim, self.variant = lstm, dim, variant
        gates = 2 if variant >= 3 else 1
        self.from_words = nn.Linear(dim, gates * dim)
        self.from_states = nn.Linear(dim, gates * dim, bias=False)
        self.from_before = nn.Linear(dim, gates * dim, bias=False) if variant == 4 else None

    def forward(self, tokens: Tokens) -> tuple[Tensor, Tree]:
        """The outputs at the nodes of the LSTM's tree, and the tree."""
        words, states, gates, tree = self._read(tokens)
        if self.variant in (3, 4):
            return self._recur(words, gates, tree), tree
        gates = torch.sigmoid(gates)
        if self.variant == 1:
            return words * gates, tree
        if self.variant == 2:
            return states * gates, tree
        first, second = gates.chunk(2, dim=1)
        return words * first + states * second, tree

    def openness(self, tokens: Tokens) -> tuple[Tensor, Tree]:
        """The gate that scales what is averaged, [nodes, dim] in (0, 1), and the tree.

        Of GRAN-5, the one of the words. GRAN-3 and GRAN-4 average nothing and have none.
        """
        assert self.variant not in (3, 4)
        *_, gates, tree = self._read(tokens)
        return torch.sigmoid(gates[:, : self.dim]), tree

    def _read(self, tokens: Tokens) -> tuple[Tensor, Tensor, Tensor, Tree]:
        """At every node: the word, the LSTM's state, the sums in the gates."""
        states, tree = self.lstm(tokens)
        places = torch.from_numpy(tree.words).to(states.device)
        gates = self.from_words(tokens.vectors)[places] + self.from_states(states)
        return tokens.vectors[places], states, gates, tree

    def _recur(self, words: Tensor, gates: Tensor, tree: Tree) -> Tensor:
        parents = torch.from_numpy(tree.parents).to(words.device)
        outputs: list[Tensor] = []
        for level, (start, end) in enumerate(zip(tree.starts, tree.starts[1:], strict=False)):
            gate = gates[start:end]
            before = None
            if level:
                before = outputs[-1][parents[start:end] - int(tree.starts[level - 1])]
                if self.from_before is not None:
                    gate = gate + self.from_before(before)
            keep, take = torch.sigmoid(gate).chunk(2, dim=1)
            output = words[start:end] * take
            outputs.append(output if before is None else output + before * keep)
        return torch.cat(outputs) if outputs else words
