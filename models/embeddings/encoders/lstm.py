"""An LSTM on the prefix trie of a batch, with an explicit gradient."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag
from torch.nn.utils.rnn import PackedSequence

from paraloom.models.embeddings.encoders.embedding_matrix import on_device
from paraloom.models.embeddings.encoders.prefix_trie import PrefixTrie, build_trie
from paraloom.models.embeddings.encoders.ragged_batches import (
    RaggedBatch,
    tokens_by_row,
    vectors_at,
)

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class LSTM(nn.Module):
    """An LSTM in one direction, with torch's cell or with peepholes.

    With peepholes (Gers et al. 2003, as in Wieting & Gimpel 2017), each component of a gate also
    depends on the same component of the cell c. The input and forget gates depend on cₜ₋₁, and the
    output gate depends on cₜ.

    On a GPU, cuDNN computes torch's cell. On a CPU, or with peepholes, `_States` computes a state
    once for each distinct prefix.
    """

    def __init__(
        self, dim: int, hidden: int, *, peepholes: bool = False, backward: bool = False
    ) -> None:
        super().__init__()
        self.weights = nn.LSTM(dim, hidden)
        self.peepholes = nn.Parameter(torch.randn(3, hidden) * 0.1) if peepholes else None
        self.reversed = backward
        self.dim = hidden

    def forward(self, batch: RaggedBatch) -> tuple[Tensor, PrefixTrie]:
        """Return the states at the nodes of the batch's trie, [nodes, hidden], and the trie."""
        vectors, rows, offsets = batch
        # cuDNN needs at least one word.
        packed = vectors.is_cuda and self.peepholes is None and len(rows) > 0
        trie = build_trie(rows, offsets, backward=self.reversed, share=not packed)
        cell = self.weights
        if packed:
            inputs = vectors_at(vectors, trie.rows)
            sizes = torch.from_numpy(np.diff(trie.starts))
            return cell(PackedSequence(inputs, sizes))[0].data, trie
        # Multiply the input weights by each distinct word only once.
        from_input, recurrent, input_bias, recurrent_bias = cell.all_weights[0]
        gates = torch.addmm(input_bias + recurrent_bias, vectors, from_input.T)
        return _States.apply(gates, recurrent, self.peepholes, trie), trie


class _States(torch.autograd.Function):
    """Computes the states of all nodes, [nodes, hidden], one level at a time.

    `gates`, [v, 4 hidden], is the part of each word's gates that depends on the word alone, in
    torch's order i, f, g, o. Only states of nodes with children (inner nodes) are multiplied by the
    recurrent weights.
    """

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, recurrent: Tensor, peepholes: Tensor | None, trie: PrefixTrie
    ) -> Tensor:
        levels = _Levels(trie, gates.device)
        nodes, size = len(trie.rows), recurrent.shape[1]
        active = gates.index_select(0, levels.rows)
        cells, squashed, states = (gates.new_empty(nodes, size) for _ in range(3))
        weights = recurrent.T.contiguous()
        for level in range(len(levels)):
            here, parents, inner, among = levels[level]
            now, cell = active[here], cells[here]
            if level:
                read = states.index_select(0, inner)
                if among is None:
                    now.addmm_(read, weights)
                else:
                    now += (read @ weights).index_select(0, among)
            i, f, g, o = torch.split(now, size, dim=1)
            before = cells.index_select(0, parents) if level else None
            if peepholes is not None and before is not None:
                i.addcmul_(before, peepholes[0])
                f.addcmul_(before, peepholes[1])
            now[:, : 2 * size].sigmoid_()
            g.tanh_()
            torch.mul(i, g, out=cell)
            if before is not None:
                cell.addcmul_(f, before)
            if peepholes is not None:
                o.addcmul_(cell, peepholes[2])
            o.sigmoid_()
            torch.tanh(cell, out=squashed[here])
            torch.mul(o, squashed[here], out=states[here])
        ctx.save_for_backward(active, cells, squashed, states, recurrent, peepholes)
        ctx.trie, ctx.levels, ctx.size = trie, levels, len(gates)
        return states

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        active, cells, squashed, states, recurrent, peepholes = ctx.saved_tensors
        levels: _Levels = ctx.levels
        size = recurrent.shape[1]
        to_gates = torch.empty_like(active)
        to_states = gradient.clone()
        to_cells = torch.zeros_like(cells)
        to_products = active.new_empty(len(levels.inner), 4 * size)
        to_peepholes = None if peepholes is None else torch.zeros_like(peepholes)
        for level in reversed(range(len(levels))):
            here, parents, inner, among = levels[level]
            i, f, g, o = torch.split(active[here], size, dim=1)
            to_i, to_f, to_g, to_o = torch.split(to_gates[here], size, dim=1)
            tanh, to_state, to_cell = squashed[here], to_states[here], to_cells[here]
            _sigmoid_backward(to_state * tanh, o, grad_input=to_o)
            to_cell += torch.ops.aten.tanh_backward(to_state * o, tanh)
            if peepholes is not None and to_peepholes is not None:
                to_cell.addcmul_(to_o, peepholes[2])
                to_peepholes[2] += (to_o * cells[here]).sum(0)
            _sigmoid_backward(to_cell * g, i, grad_input=to_i)
            _tanh_backward(to_cell * i, g, grad_input=to_g)
            if level == 0:
                to_f.zero_()
                break
            before = cells.index_select(0, parents)
            _sigmoid_backward(to_cell * before, f, grad_input=to_f)
            back = to_cell * f
            if peepholes is not None and to_peepholes is not None:
                back.addcmul_(to_i, peepholes[0]).addcmul_(to_f, peepholes[1])
                to_peepholes[0] += (to_i * before).sum(0)
                to_peepholes[1] += (to_f * before).sum(0)
            to_cells.index_add_(0, parents, back)
            to_product = to_products[levels.inner_of(level)]
            if among is None:
                to_product.copy_(to_gates[here])
            else:
                to_product.zero_().index_add_(0, among, to_gates[here])
            to_states.index_add_(0, inner, to_product @ recurrent)
        to_recurrent = to_products.T @ states.index_select(0, levels.inner)
        order, starts = (
            on_device(array, gradient.device) for array in tokens_by_row(ctx.trie.rows, ctx.size)
        )
        by_row = embedding_bag(order, to_gates, starts, mode="sum", include_last_offset=True)
        return by_row, to_recurrent, to_peepholes, None


class _Levels:
    """A trie as tensors, with the inner nodes of each level."""

    def __init__(self, trie: PrefixTrie, device: torch.device) -> None:
        starts = trie.starts
        inner = np.unique(trie.parents[starts[1] :]) if len(starts) > 2 else np.zeros(0, np.int64)
        self.bounds = np.searchsorted(inner, starts)  # index of each level's first inner node
        among = np.searchsorted(inner, trie.parents)
        level = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        among -= self.bounds[np.maximum(level - 1, 0)]
        self.starts = starts
        self.rows, self.parents, self.inner, self.among = (
            on_device(array, device) for array in (trie.rows, trie.parents, inner, among)
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, level: int) -> tuple[slice, Tensor, Tensor, Tensor | None]:
        """Return a level's nodes, their parents, the previous level's inner nodes, and the index of
        each parent among the inner nodes. The index is None if parents and inner nodes are equal.
        """
        here = slice(int(self.starts[level]), int(self.starts[level + 1]))
        parents, inner = self.parents[here], self.inner[self.inner_of(level)]
        return here, parents, inner, None if len(parents) == len(inner) else self.among[here]

    def inner_of(self, level: int) -> slice:
        """Return the slice of the inner nodes on the level before `level`."""
        return slice(int(self.bounds[max(level - 1, 0)]), int(self.bounds[level]))
