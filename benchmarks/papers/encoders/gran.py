"""Gated recurrent averaging networks: word vectors scaled by gates of an LSTM (W&G 3.1)."""

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from paraloom.models.embeddings.encoders.lstm import LSTM
from paraloom.models.embeddings.encoders.prefix_trie import PrefixTrie
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch, vectors_at

Variant = Literal[1, 2, 3, 4, 5, "tanh", "relu"]


class GRAN(nn.Module):
    """A GRAN, which computes an output aₜ for each word.

    xₜ is the vector of the word, and hₜ is the state of the LSTM. The gates are σ and σ', each with
    its own weights: σ(Wₓ xₜ + Wₕ hₜ + b). The vector of a sentence is, by variant:

        GRAN    the mean of aₜ = xₜ ⊙ σ  (Eq. 1)
        GRAN-2  the mean of aₜ = hₜ ⊙ σ
        GRAN-3  the last aₜ = aₜ₋₁ ⊙ σ + xₜ ⊙ σ', divided by the length
        GRAN-4  as GRAN-3, but both gates also depend on aₜ₋₁
        GRAN-5  the mean of aₜ = xₜ ⊙ σ + hₜ ⊙ σ'
        tanh    the mean of aₜ = tanh(Wₓ xₜ + Wₕ hₜ + b), without a gate (footnote 2)
        relu    the mean of aₜ = max(0, Wₓ xₜ + Wₕ hₜ + b), without a gate (footnote 2)

    """

    def __init__(self, lstm: LSTM, dim: int, variant: Variant) -> None:
        super().__init__()
        if lstm.dim != dim:
            raise ValueError(f"hidden: {lstm.dim}, but a GRAN needs the length of a word ({dim})")
        self.lstm, self.dim, self.variant = lstm, dim, variant
        gates = 2 if variant in (3, 4, 5) else 1
        self.from_words = nn.Linear(dim, gates * dim)
        self.from_states = nn.Linear(dim, gates * dim, bias=False)
        self.from_before = nn.Linear(dim, gates * dim, bias=False) if variant == 4 else None

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, PrefixTrie]:
        """Return the outputs at the nodes of the LSTM's trie, [nodes, dim], and the trie."""
        words, states, gates, trie = self._read(batch)
        if self.variant in (3, 4):
            length = np.repeat(np.arange(1, len(trie.starts)), np.diff(trie.starts))
            outputs = self._recur(words, gates, trie)
            return outputs / torch.from_numpy(length).unsqueeze(1).to(outputs), trie
        if self.variant == "tanh":
            return torch.tanh(gates), trie
        if self.variant == "relu":
            return torch.relu(gates), trie
        gates = torch.sigmoid(gates)
        if self.variant == 1:
            return words * gates, trie
        if self.variant == 2:
            return states * gates, trie
        first, second = gates.chunk(2, dim=1)
        return words * first + states * second, trie

    @property
    def averages_gated(self) -> bool:
        """Whether the vector of a sentence is a mean of gated vectors."""
        return self.variant in (1, 2, 5)

    def averaged_gate(self, batch: RaggedBatch) -> tuple[Tensor, PrefixTrie]:
        """Return the first gate, [nodes, dim] in (0, 1), and the trie. `averages_gated` must be
        true."""
        assert self.averages_gated
        *_, gates, trie = self._read(batch)
        return torch.sigmoid(gates[:, : self.dim]), trie

    def _read(self, batch: RaggedBatch) -> tuple[Tensor, Tensor, Tensor, PrefixTrie]:
        states, trie = self.lstm(batch)
        gates = vectors_at(self.from_words(batch.vectors), trie.rows) + self.from_states(states)
        return vectors_at(batch.vectors, trie.rows), states, gates, trie

    def _recur(self, words: Tensor, gates: Tensor, trie: PrefixTrie) -> Tensor:
        parents = torch.from_numpy(trie.parents).to(words.device)
        outputs: list[Tensor] = []
        for level, (start, end) in enumerate(zip(trie.starts, trie.starts[1:], strict=False)):
            gate = gates[start:end]
            before = None
            if level:
                above = parents[start:end] - int(trie.starts[level - 1])
                before = outputs[-1].index_select(0, above)
                if self.from_before is not None:
                    gate = gate + self.from_before(before)
            keep, take = torch.sigmoid(gate).chunk(2, dim=1)
            output = words[start:end] * take
            outputs.append(output if before is None else output + before * keep)
        return torch.cat(outputs) if outputs else words
