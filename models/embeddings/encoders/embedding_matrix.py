"""An embedding matrix whose sparse training steps closely approximate the steps of dense Adam."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # as in Kingma & Ba (2015), and torch's defaults
_MEMORY = 400  # steps after which a first moment has faded: 0.9^400 = 5e-19
_GAPS = np.arange(_MEMORY, 0, -1)
_FADES = np.append(BETA1 ** np.arange(_MEMORY + 1), 0.0)
# The factors of cⱼ εⱼⁱ (see `EmbeddingMatrix`) that depend on the gap j, [400, 4]. Rows are gaps
# j = 400 … 1, and columns are powers i = 0 … 3.
_SUMS = BETA1 ** _GAPS[:, None] * BETA2 ** (-_GAPS[:, None] / 2 * np.arange(1, 5))
_TINY = 1e-30  # added because roots of zeros and denormals are slow; much less than (1e-6 ε)²


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """Return an array as a tensor on a device. A copy to a GPU is asynchronous."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


class _Read(NamedTuple):
    """Rows of the matrix that the last batch read."""

    rows: NDArray[np.int64]
    positions: Tensor  # `rows` on the device
    vectors: Tensor
    moments: tuple[Tensor, ...]  # Adam's first and second moments


class EmbeddingMatrix(nn.Module):
    """The vectors of a vocabulary, [size, dim]. A batch reads the rows of its distinct words.

    Adam also changes a row without a gradient, because Adam's moments decay gradually. If m and v
    are a row's moments after step s, the sum of the next k updates without a gradient is

        Σⱼ lr · (m β₁ʲ / (1 - β₁ˢ⁺ʲ)) / (√(v β₂ʲ / (1 - β₂ˢ⁺ʲ)) + ε)  =  Σⱼ cⱼ · m / (√v + εⱼ)

    where cⱼ and εⱼ do not depend on the row. The sum is computed when the row is next read, by a
    Gauss quadrature with two nodes: m · (a / (√v + α) + b / (√v + β)). The numbers a, b, α and β
    are chosen so that a αⁱ + b βⁱ = Σⱼ cⱼ εⱼⁱ for the powers i = 0 … 3. The approximation is close
    because √v is much larger than all εⱼ, unless the row's gradients are below 1e-6.
    """

    weight: Tensor  # float32 [size, dim]; the argument of `__init__`, which is not copied

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.steps = 0
        self.trained = False
        self._read: _Read | None = None

    def prepare(self, learning_rate: float, *, towards: float = 0.0, adam: bool = True) -> None:
        """Begin training with Adam or with plain gradient steps. `towards` is the factor λ of the
        regularisation λ ‖W - W₀‖², where W₀ are the present vectors (W&G 2017, Eq. 2). If λ is not
        0, every step updates all rows."""
        self.learning_rate, self.towards, self.trained = learning_rate, towards, True
        self.adam = adam
        self.first = torch.zeros_like(self.weight if adam else self.weight[:0])
        self.second = torch.zeros_like(self.first)
        self.initial = self.weight.clone() if towards else None
        self.last = np.zeros(len(self.weight), np.int64)  # each row's last step with a gradient
        # Row s, column i: the sum of cⱼ (εⱼ / ε)ⁱ over the steps after step s.
        self.pending = np.zeros((1024, 4))

    def forward(self, rows: NDArray[np.int64]) -> Tensor:
        """Return the vectors of distinct `rows`. For a training step, they are a leaf tensor."""
        index = on_device(rows, self.weight.device)
        vectors = self.weight.index_select(0, index)
        if not self.trained:
            return vectors
        moments: tuple[Tensor, ...] = ()
        if self.adam:
            first, second = (m.index_select(0, index) for m in (self.first, self.second))
            if not self.towards:
                self._catch_up(vectors, first, second, self.last[rows])
            moments = first, second
        if torch.is_grad_enabled():
            self._read = _Read(rows, index, vectors.requires_grad_(), moments)
        return vectors

    def current(self) -> Tensor:
        """Return a copy of all vectors, [size, dim], which includes pending updates."""
        with torch.no_grad():
            vectors: Tensor = self(np.arange(len(self.weight)))
        return vectors

    def finalize(self) -> None:
        """End training: store all pending updates and delete the moments."""
        self.weight = self.current()
        del self.first, self.second, self.initial
        self.steps, self.trained = 0, False

    def state(self) -> dict[str, Tensor]:
        """Return the tensors of a checkpoint."""
        state = {name: getattr(self, name) for name in ("weight", "first", "second")}
        state["last"] = torch.from_numpy(self.last)
        state["pending"] = torch.from_numpy(self.pending[: self.steps + 1])
        return state if self.initial is None else {**state, "initial": self.initial}

    def restore(self, state: Mapping[str, Tensor], steps: int) -> None:
        """Resume from a checkpoint that was saved after a number of steps."""
        for name, tensor in self.state().items():
            if name != "pending":
                tensor.copy_(state[name])
        self.pending = np.zeros((2 * steps + 1024, 4))
        self.pending[: steps + 1] = state["pending"].numpy()
        self.steps = steps

    @property
    def read(self) -> Tensor | None:
        """The vectors that were read since the last step, or None. Their `grad` is the gradient."""
        return None if self._read is None else self._read.vectors

    @torch.no_grad()
    def step(self) -> None:
        """Make a training step with the gradient of the rows that were read since the last step."""
        self.steps += 1
        if self.adam:
            self._extend()
        if self._read is None:
            return
        rows, index, vectors, moments = self._read
        self._read = None
        gradient = vectors.grad
        vectors = vectors.detach()
        if not self.adam:
            if self.initial is not None:
                away = self.weight - self.initial
                self.weight.sub_(away, alpha=2 * self.towards * self.learning_rate)
            if gradient is not None:
                self.weight.index_add_(0, index, gradient, alpha=-self.learning_rate)
        elif self.towards:
            assert self.initial is not None
            dense = (self.weight - self.initial).mul_(2 * self.towards)
            if gradient is not None:
                dense.index_add_(0, index, gradient)
            _adam(self.weight, dense, self.first, self.second, self.steps, self.learning_rate)
        elif gradient is not None:
            first, second = moments
            _adam(vectors, gradient, first, second, self.steps, self.learning_rate)
            self.weight.index_copy_(0, index, vectors)
            self.first.index_copy_(0, index, first)
            self.second.index_copy_(0, index, second)
            self.last[rows] = self.steps

    def _catch_up(
        self, vectors: Tensor, first: Tensor, second: Tensor, last: NDArray[np.int64]
    ) -> None:
        """Apply pending updates to copies of rows. `last` has each row's last step with a
        gradient."""
        gap = self.steps - last
        fades = np.stack([_FADES[np.minimum(gap, _MEMORY + 1)], BETA2**gap])
        scales = np.concatenate([_quadrature(self.pending[last]).reshape(4, -1), fades])
        weight, epsilon, other, beyond, fade, fade_second = (
            on_device(scales, vectors.device).to(vectors.dtype).unsqueeze(2)
        )
        root = (second + _TINY).sqrt_()
        vectors.addcdiv_(first * weight, root + epsilon, value=-1)
        vectors.addcdiv_(first * other, root.add_(beyond), value=-1)
        first.mul_(fade)
        second.mul_(fade_second)

    def _extend(self) -> None:
        """Add the present step to the rows of `pending` for the last `_MEMORY` steps."""
        t = self.steps
        if t >= len(self.pending):
            self.pending = np.concatenate([self.pending, np.zeros_like(self.pending)])
        bias = math.sqrt(1 - BETA2**t) ** np.arange(1, 5)
        scale = self.learning_rate / (1 - BETA1**t) * bias
        steps = min(t, _MEMORY)
        self.pending[t - steps : t] += scale * _SUMS[_MEMORY - steps :]


def _quadrature(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights a, b and the nodes α, β of the quadrature, [term, weight or node, row],
    from rows of `pending`, [rows, 4]."""
    total = np.maximum(moments[:, 0], 1e-300)
    mean, second, third = (moments[:, i] / total for i in (1, 2, 3))
    variance = np.maximum(second - mean**2, 1e-12)
    skew = (third - 3 * mean * second + 2 * mean**3) / (2 * variance)
    low, high = (skew + sign * np.sqrt(skew**2 + variance) for sign in (-1, 1))
    weight = moments[:, 0] * high / (high - low)
    nodes = np.array([[weight, mean + low], [moments[:, 0] - weight, mean + high]])
    nodes[:, 1] = EPSILON * np.maximum(nodes[:, 1], 1e-6)
    return nodes


def _adam(
    weight: Tensor, gradient: Tensor, first: Tensor, second: Tensor, step: int, rate: float
) -> None:
    torch._fused_adam_(
        [weight],
        [gradient],
        [first],
        [second],
        [],
        [torch.full((), float(step), device=weight.device)],
        lr=rate,
        beta1=BETA1,
        beta2=BETA2,
        weight_decay=0.0,
        eps=EPSILON,
        amsgrad=False,
        maximize=False,
    )
