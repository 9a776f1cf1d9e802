"""Encoders against their equations, written out plainly, word by word, in float64."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
import torch

from paraloom.models.embeddings.encoders import ENCODERS, build_encoder, embedding_matrices, kinds
from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.encoders.embedding_matrix import EmbeddingMatrix
from paraloom.models.embeddings.encoders.lstm import LSTM
from paraloom.models.embeddings.encoders.ragged_batches import RaggedBatch, vectors_at
from paraloom.models.embeddings.encoders.recurrent import _pool
from paraloom.models.embeddings.ragged_columns import Kind, RaggedIds
from paraloom.papers.options import SystemOptions

D = 5
SENTENCES = [[1, 2, 3], [1, 2, 3], [1, 2, 4, 4, 1], [2], [], [3, 2, 3, 1], [1], [1, 2, 3, 5, 6, 7]]


def flat(sentences: Sequence[Sequence[int]]) -> RaggedIds:
    lengths = [len(sentence) for sentence in sentences]
    ids = np.array([word for sentence in sentences for word in sentence], np.int32)
    return RaggedIds(ids, np.cumsum([0, *lengths]).astype(np.int64))


def rows_of(flat: RaggedIds) -> list[list[int]]:
    return [flat.ids[start:end].tolist() for start, end in pairwise(flat.offsets)]


def encoder_of(model: str, **options: Any) -> Any:
    """An encoder; its attributes depend on the model, so it has no closer type."""
    torch.manual_seed(0)
    vectors = {kind: torch.randn(9, D) for kind in kinds(model)}
    return build_encoder(SystemOptions(model=model, dim=D, **options), vectors).double()


def encode(encoder: Encoder, sentences: Sequence[Sequence[int]] = SENTENCES) -> torch.Tensor:
    vectors: torch.Tensor = encoder(dict.fromkeys(get_args(Kind), flat(sentences)))
    return vectors


def gradient_of(tensor: torch.Tensor | None) -> torch.Tensor:
    assert tensor is not None and tensor.grad is not None
    return tensor.grad.clone()


def states(lstm: LSTM, words: list[torch.Tensor]) -> list[torch.Tensor]:
    """The equations of Gers et al. 2003 (or, without peepholes, torch's), one word at a time."""
    cell, peepholes = lstm.weights, lstm.peepholes
    h = c = torch.zeros(lstm.dim, dtype=torch.float64)
    result = []
    for x in reversed(words) if lstm.reversed else words:
        (w, u, b, d) = cell.all_weights[0]
        i, f, g, o = (w @ x + b + u @ h + d).chunk(4)
        if peepholes is not None:
            i, f = i + peepholes[0] * c, f + peepholes[1] * c
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        if peepholes is not None:
            o = o + peepholes[2] * c
        h = torch.sigmoid(o) * torch.tanh(c)
        result.append(h)
    return result[::-1] if lstm.reversed else result


def outputs(network: Any, words: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the network gives for each word, in the order of the sentence."""
    if not hasattr(network, "variant"):
        return states(network, words)
    h = states(network.lstm, words)
    a = torch.zeros(D, dtype=torch.float64)
    result = [a] * len(words)
    order = range(len(words))
    for t in reversed(order) if network.lstm.reversed else order:
        gate = network.from_words(words[t]) + network.from_states(h[t])
        if network.variant == 4:
            gate = gate + network.from_before(a)
        before_sigmoid = gate
        gate = torch.sigmoid(gate)
        match network.variant:
            case "tanh":
                a = torch.tanh(before_sigmoid)
            case "relu":
                a = before_sigmoid.clamp_min(0)
            case 1:
                a = words[t] * gate
            case 2:
                a = h[t] * gate
            case 3 | 4:
                a = a * gate[:D] + words[t] * gate[D:]
            case 5:
                a = words[t] * gate[:D] + h[t] * gate[D:]
        result[t] = a
    return result


def plainly(encoder: Any, sentence: Sequence[int]) -> torch.Tensor:
    words = [encoder.input.table.weight[word] for word in sentence]
    if not words:
        return torch.zeros(encoder.dim, dtype=torch.float64)
    each = [outputs(network, words) for network in encoder.directions]
    if encoder.pooling.startswith("last"):
        each = [[out[0 if i else -1]] for i, out in enumerate(each)]
    sides = [torch.stack(out) for out in each]
    if getattr(encoder.directions[0], "variant", None) in (3, 4):  # W&G 3.1
        sides = [side / len(sentence) for side in sides]
    if len(sides) == 1:
        rows = sides[0]
    elif encoder.layer is not None:
        rows = torch.tanh(encoder.layer(torch.cat(sides, dim=1)))
    elif encoder.combination == "mean":
        rows = (sides[0] + sides[1]) / 2
    else:
        rows = torch.cat(sides, dim=1)
    return rows.max(dim=0).values if encoder.pooling == "max" else rows.mean(dim=0)


RECURRENT = [
    (model, combine, cell)
    for model in ENCODERS
    if "lstm" in model or "gran" in model
    for combine in (("concat", "mean", "tanh") if model.startswith("bi") else ("concat",))
    for cell in (("torch", "peephole") if "lstm-avg" in model else ("peephole",))
]


@pytest.mark.parametrize(("model", "combine", "cell"), RECURRENT)
def test_recurrent_encoders_follow_their_equations(model: str, combine: str, cell: str) -> None:
    hidden = None if "gran" in model else 4
    encoder = encoder_of(model, combine=combine, cell=cell, hidden=hidden)
    parameters = list(encoder.parameters())
    table = embedding_matrices(encoder)["input.table"]
    table.prepare(1e-3)
    found = encode(encoder)
    target = torch.randn_like(found)
    torch.autograd.backward((found * target).sum())
    gradients = [gradient_of(parameter) for parameter in parameters]
    word_gradient = gradient_of(table.read)
    encoder.zero_grad()

    table.weight.requires_grad_()
    expected = torch.stack([plainly(encoder, sentence) for sentence in SENTENCES])
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    torch.autograd.backward((expected * target).sum())
    assert torch.allclose(word_gradient, gradient_of(table.weight)[1:8], rtol=0, atol=1e-12)
    for ours, parameter in zip(gradients, parameters, strict=True):
        assert torch.allclose(ours, gradient_of(parameter), rtol=0, atol=1e-12)


class OnGpu(torch.Tensor):
    """A tensor that says it is on a GPU, so that the LSTM calls torch's own."""

    is_cuda = True


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("sentences", [SENTENCES, [[], []]])
def test_torch_s_lstm_gives_the_same_states(sentences: list[list[int]], backward: bool) -> None:
    lstm = LSTM(D, 4, backward=backward)
    ids, offsets = flat(sentences)
    vectors = torch.randn(9, D)
    (ours, trie), (theirs, packed) = (
        lstm(RaggedBatch(of, ids, offsets)) for of in (vectors, vectors.as_subclass(OnGpu))
    )
    assert torch.allclose(ours[trie.paths], theirs[packed.paths], rtol=0, atol=1e-6)
    assert np.array_equal(trie.ends < 0, packed.ends < 0)


@pytest.mark.parametrize("model", ["word-avg", "trigram-avg", "word-sum"])
def test_averages(model: str) -> None:
    encoder = encoder_of(model)
    found = encode(encoder)
    weight = next(iter(embedding_matrices(encoder).values())).weight
    for vector, sentence in zip(found, SENTENCES, strict=True):
        total = weight[sentence].sum(dim=0)
        expected = total if model == "word-sum" else total / max(len(sentence), 1)
        # Word vectors are float32, and may be summed in another order.
        assert torch.allclose(vector, expected.double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("mix", ["concat", "add"])
def test_mixed(mix: str) -> None:
    encoder = encoder_of("word-avg+lstm-avg+trigram-avg", mix=mix)
    vectors = [encode(part) for part in encoder.parts]
    expected = torch.cat(vectors, 1) if mix == "concat" else vectors[0] + vectors[1] + vectors[2]
    assert torch.equal(encode(encoder), expected) and encoder.dim == expected.shape[1]
    assert len({table.weight.data_ptr() for table in embedding_matrices(encoder).values()}) == 3


@pytest.mark.parametrize("model", [*ENCODERS, "word-avg+bilstm-max+trigram-avg"])
def test_a_sentence_s_vector_does_not_depend_on_its_batch(model: str) -> None:
    encoder = encoder_of(model).eval()
    with torch.no_grad():
        together = encode(encoder)
        apart = torch.cat([encode(encoder, [sentence]) for sentence in SENTENCES])
        assert encode(encoder, []).shape == (0, encoder.dim)
        assert (encode(encoder, [[], []]) == 0).all()
        forward, backward = encode(encoder, [SENTENCES[-1], SENTENCES[-1][::-1]])
        assert torch.allclose(forward, backward, atol=1e-5) != encoder.reads_order
    assert torch.allclose(together, apart, rtol=0, atol=1e-6)  # word vectors are float32
    assert (together[4] == 0).all() and (together[[0, 3]] != 0).any(dim=1).all()


@pytest.mark.parametrize("model", ["word-avg", "bilstm-avg"])
@pytest.mark.parametrize("noise", ["dropout", "word_dropout"])
def test_noise_is_new_for_every_token_and_unbiased(model: str, noise: str) -> None:
    encoder = encoder_of(model, **{noise: 0.5}).eval()
    encoder.input.table.prepare(1e-3)
    clean = encode(encoder, [[1, 2]])
    encoder.train()
    noisy = encode(encoder, [[1, 2]] * 4000)
    different = len(torch.unique((noisy * 1e6).round(), dim=0))
    assert different == 4 if noise == "word_dropout" else 900 < different <= 1024
    if model == "word-avg":
        assert torch.allclose(noisy.mean(0), clean[0].to(noisy), rtol=0, atol=0.1)
        share = (noisy == 0).double().mean()
        assert share == pytest.approx(0.25, abs=0.03)  # both tokens dropped
    torch.autograd.backward(noisy.sum())
    gradient_of(embedding_matrices(encoder)["input.table"].read)


def test_names() -> None:
    assert kinds("word-avg + lstm + trigram-avg") == ["words", "trigrams"]
    with pytest.raises(ValueError, match="no encoder is named 'avg'; choose among word-avg,"):
        kinds("word-avg+avg")
    with pytest.raises(ValueError, match="mix: vectors of lengths"):
        encoder_of("word-avg+bilstm-avg", mix="add")
    with pytest.raises(ValueError, match="hidden: 4, but a GRAN needs"):
        encoder_of("gran", hidden=4)
    with pytest.raises(ValueError, match="cell: normalised is for a GRU"):
        encoder_of("lstm", cell="normalised")
    with pytest.raises(ValueError, match="cell: peephole is for an LSTM"):
        encoder_of("gru", cell="peephole")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_equal_maxima_share_the_gradient(sign: float) -> None:
    vectors = torch.tensor([[1.0], [0.5], [1.0]], requires_grad=True)
    batch = RaggedBatch(vectors, np.arange(3, dtype=np.int32), np.array([0, 3]))
    torch.autograd.backward(sign * _pool(batch, "max").sum())
    assert gradient_of(vectors).flatten().tolist() == [sign / 2, 0.0, sign / 2]


def test_several_threads_sum_the_gradient_of_a_word_in_one_order() -> None:
    """Otherwise two trainings with dropout, or with a layer, end with other weights."""
    rows = (np.random.default_rng(0).zipf(1.3, 20_000) % 500).astype(np.int32)
    vectors, gradient = torch.zeros(500, 64, requires_grad=True), torch.randn(20_000, 64)
    expected = torch.zeros(500, 64).index_add_(0, torch.from_numpy(rows), gradient)
    encoder = encoder_of("bilstm-avg", combine="tanh", hidden=64).float()
    output = torch.zeros(500, 64, requires_grad=True)
    of_layer = []
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _ in range(5):
            vectors.grad = output.grad = None
            torch.autograd.backward(vectors_at(vectors, rows), gradient)
            assert torch.equal(gradient_of(vectors), expected)
            torch.autograd.backward(encoder._combine([output, output], [rows, rows]), gradient)
            of_layer.append(gradient_of(output))
            assert torch.equal(of_layer[-1], of_layer[0])
    finally:
        torch.set_num_threads(threads)


def beside_adam(
    start: torch.Tensor, rate: float, **how: Any
) -> tuple[EmbeddingMatrix, torch.nn.Parameter, torch.optim.Adam]:
    """A matrix, and the same one whose rows all take part in every step."""
    table, dense = EmbeddingMatrix(start.clone()), torch.nn.Parameter(start.clone())
    table.prepare(rate, **how)
    return table, dense, torch.optim.Adam([dense], lr=rate)


def test_deferred_steps_equal_a_dense_adam() -> None:
    torch.manual_seed(0)
    start = torch.randn(50, 7, dtype=torch.float64) * 0.1
    table, dense, adam = beside_adam(start, 1e-3)
    rng = np.random.default_rng(0)
    for step in range(700):
        # few rows a step, some of them never, so that gaps of all lengths appear
        rows = np.unique(rng.zipf(1.3, size=4) % 40)
        target = torch.from_numpy(rng.standard_normal((len(rows), 7))) * 10.0 ** -(step % 6)
        ours = table(rows)
        assert torch.allclose(ours, dense[rows], rtol=0, atol=1e-6), step
        torch.autograd.backward((ours * target).sum())
        table.step()
        adam.zero_grad()
        torch.autograd.backward((dense[rows] * target).sum())
        adam.step()
    assert torch.allclose(table.current(), dense, rtol=0, atol=1e-6)
    assert (table.current() - start).abs().max() > 0.05  # there was something to follow


def test_regularisation_towards_the_first_vectors_is_dense() -> None:
    torch.manual_seed(0)
    start = torch.randn(20, 3, dtype=torch.float64)
    table, dense, adam = beside_adam(start, 1e-2, towards=0.3)
    for step in range(30):
        rows = np.arange(step % 5, 20, 5)
        torch.autograd.backward((table(rows) ** 2).sum())
        table.step()
        adam.zero_grad()
        towards = 0.3 * ((dense - start) ** 2).sum()
        torch.autograd.backward((dense[rows] ** 2).sum() + towards)
        adam.step()
    assert torch.allclose(table.current(), dense, rtol=0, atol=1e-12)


def test_reading_changes_nothing() -> None:
    table = EmbeddingMatrix(torch.randn(10, 4))
    table.prepare(1e-3)
    torch.autograd.backward((table(np.array([1, 5])) * 3).sum())
    table.step()
    table.step()
    before = {name: value.clone() for name, value in vars(table).items() if torch.is_tensor(value)}
    first, second = table.current(), table.current()
    assert torch.equal(first, second)
    assert all(torch.equal(vars(table)[name], value) for name, value in before.items())
    assert not torch.equal(first, table.weight)  # row 1 moved in the second step, too


def test_plain_steps_regularise_towards_the_initial_vectors() -> None:
    start = torch.randn(4, D, generator=torch.Generator().manual_seed(3))
    table = EmbeddingMatrix(start.clone())
    table.prepare(0.1, towards=0.3, adam=False)
    expected = start.clone()
    for rows in ([0, 2], [2, 3]):
        table(np.array(rows)).pow(2).sum().backward()
        table.step()
        gradient = 0.6 * (expected - start)
        gradient[rows] += 2 * expected[rows]
        expected = expected - 0.1 * gradient
    assert torch.allclose(table.current(), expected)
