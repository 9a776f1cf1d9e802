"""Encoders with decoders: loss and unrolling against their equations in float64, and the task."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.stats import spearmanr

from paraloom.models.embeddings.comparison import cosines, dots
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.embeddings.encoders import build_encoder, embedding_matrices
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import WordVectors, write_vectors
from paraloom.papers import tasks
from paraloom.papers.analyses.decoder_spaces import Space, compare_spaces, in_space
from paraloom.papers.datasets.contiguous_text import TextIds, read_text
from paraloom.papers.encoders.context import Context, SentencesInContext
from paraloom.papers.options import ContextOptions, SystemOptions
from paraloom.papers.tasks import context as context_task
from paraloom.papers.tasks.context import expanded
from tests.labelled import labelled
from tests.models.embeddings.encoders.test_encoders import flat, gradient_of
from tests.papers.encoders.test_gru import normalised
from tests.run_helpers import Patch

D, H, V = 5, 4, 9
Decoder = Literal["gru", "bow"]
BEGIN, END = 1, 2
OWN = [[1, 3, 4, 5, 2], [1, 6, 2], [1, 3, 4, 2]]
BEFORE = [[1, 7, 2], [1, 3, 4, 5, 2], [1, 8, 8, 2]]
BEHIND = [[1, 5, 5, 2], [1, 8, 2], [1, 7, 3, 4, 6, 2]]


def options_of(encoder: str, decoder: Decoder, **section: Any) -> SystemOptions:
    return SystemOptions(
        task="context",
        context=ContextOptions(**{"text": ["t"], "decoder": decoder, **section}),
        model="gru" if encoder == "gru" else "word-sum",
        cell="normalised",
        dim=D,
        hidden=H if encoder == "gru" else None,
        tags=True,
    )


def context(encoder: str = "gru", decoder: Decoder = "gru", **section: Any) -> Any:
    """The model; its parts depend on the options, so it has no closer type."""
    torch.manual_seed(0)
    options = options_of(encoder, decoder, **section)
    built = build_encoder(options, {"words": torch.randn(V, D)}).double()
    for parameter in built.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return built


def code(model: Any, words: list[int]) -> torch.Tensor:
    """h of a sentence with tags: the encoder reads all but the begin tag."""
    weight = model.encoder.input.table.weight
    if not hasattr(model.encoder, "directions"):
        total: torch.Tensor = weight[words[1:]].sum(dim=0)
        return total
    h = torch.zeros(H, dtype=torch.float64)
    for word in words[1:]:
        h = normalised(model.encoder.directions[0], weight[word], h)
    return h


def expected_loss(model: Any) -> torch.Tensor:
    weight = model.encoder.input.table.weight
    total, count = torch.zeros((), dtype=torch.float64), 0
    for own, before, behind in zip(OWN, BEFORE, BEHIND, strict=True):
        h = code(model, own)
        for number, words in enumerate((before, behind)):
            state = h
            for read, said in pairwise(words):
                if model.decoders:
                    state = normalised(model.decoders[number], weight[read], state)
                scores = model.to_words.weight @ state + model.to_words.bias
                total = total - (scores[said] - torch.logsumexp(scores, dim=0))
                count += 1
    return total / count


@pytest.mark.parametrize("decoder", ["gru", "bow"])
@pytest.mark.parametrize("encoder", ["gru", "bow"])
def test_the_loss_and_its_gradient(encoder: str, decoder: Decoder) -> None:
    model = context(encoder, decoder)
    table = embedding_matrices(model)["encoder.input.table"]
    table.prepare(1e-3)
    loss = model.loss(SentencesInContext(*map(flat, (OWN, BEFORE, BEHIND))))
    torch.autograd.backward(loss)
    found = {name: gradient_of(p) for name, p in model.named_parameters()}
    by_word = gradient_of(table.read)
    model.zero_grad()
    table.weight.requires_grad_()
    expected = expected_loss(model)
    assert torch.allclose(loss, expected, rtol=0, atol=1e-12)
    torch.autograd.backward(expected)
    assert torch.allclose(by_word, gradient_of(table.weight)[1:], rtol=0, atol=1e-12)
    for name, parameter in model.named_parameters():
        assert torch.allclose(found[name], gradient_of(parameter), rtol=0, atol=1e-12), name


@pytest.mark.parametrize("encoder", ["gru", "bow"])
def test_unrolling_by_hand(encoder: str) -> None:
    model = context(encoder, "gru").eval()
    weight = model.encoder.input.table.weight
    codes = model({"words": flat(OWN)})
    unrolled = model.unroll(codes, 3)
    for i, words in enumerate(OWN):
        h = code(model, words)
        assert torch.allclose(codes[i], h, rtol=0, atol=1e-12)
        for decoder, states in zip(model.decoders, unrolled, strict=True):
            inputs, state = weight[BEGIN], h
            for step in range(3):
                state = normalised(decoder, inputs, state)
                assert torch.allclose(states[i, step], state, rtol=0, atol=1e-12)
                scores = torch.exp(model.to_words.weight @ state + model.to_words.bias)
                inputs = (scores / scores.sum()) @ weight


def test_spaces_of_one_model() -> None:
    model = context("gru", "gru").eval()
    sentences = {"words": flat(OWN)}
    codes = model(sentences)
    before, behind = model.unroll(codes, 2)
    model.vector, model.steps = "concat", 2
    assert model.dim == 4 * H
    joined = torch.cat([before[:, 0], before[:, 1], behind[:, 0], behind[:, 1]], dim=1)
    assert torch.allclose(model(sentences), joined)
    model.vector = "mean"
    assert model.dim == H
    assert torch.allclose(model(sentences), joined.reshape(3, 4, H).mean(dim=1))


VERBS = ["runs", "sleeps", "eats"]
ANIMALS = ["dog", "cat", "bird", "fish"]


@pytest.fixture
def story(tmp_path: Path) -> str:
    """What an animal does is said twice in a row: neighbours tell which words are alike."""
    random = np.random.default_rng(0)
    lines = []
    for _ in range(120):
        animal, verb = random.choice(ANIMALS), random.choice(VERBS)
        lines += [f"The {animal} {verb}.", f"A {animal} often {verb}.", f"So the {animal} {verb}."]
    path = tmp_path / "story.txt"
    path.write_text(" ".join(lines))
    return str(path)


def train(
    story: str, folder: Path, encoder: str = "gru", decoder: Decoder = "gru", **changes: Any
) -> dict[str, Any]:
    options = options_of(encoder, decoder, text=[story], **changes).replace(
        dim=12, hidden=None, tags=False, epochs=3, batch_size=20, learning_rate=0.01, clip=5.0
    )
    return tasks.train(options, folder, seed=1, threads=1)


@pytest.mark.parametrize(("encoder", "decoder"), [("gru", "gru"), ("bow", "bow")])
def test_train_save_load(tmp_path: Path, story: str, encoder: str, decoder: Decoder) -> None:
    metrics = train(story, tmp_path / "a", encoder, decoder)
    assert metrics["sentences"] == 360 and metrics["pairs"] == 358
    assert metrics["loss"] < 2.5  # at random among 15 words it is ln 15 = 2.7
    train(story, tmp_path / "b", encoder, decoder)
    one, other = (load_encoder(tmp_path / name) for name in "ab")
    texts = ["The dog runs.", "", "Unheard of words"]
    assert np.array_equal(one.embed(texts), other.embed(texts))
    vectors = one.embed(texts).astype(np.float64)
    found = one.similarity(texts[:1], texts[1:2])
    assert found[0] == pytest.approx(vectors[0] @ vectors[1])
    assert json.loads((tmp_path / "a" / "metrics.json").read_text())["vocabulary"] == 15
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "story.txt"]


def test_an_epoch_has_each_sentence_once_in_a_new_order(tmp_path: Path, monkeypatch: Patch) -> None:
    path = tmp_path / "text"
    path.write_text("".join(f"w{i}\n" for i in range(12)))
    vocabulary = Vocabulary([f"w{i}" for i in range(12)], tags=True)
    text = TextIds.write(tmp_path / "t", read_text([path], "lines"), vocabulary, max_words=9)
    monkeypatch.setattr(context_task, "_POOL", 3)

    def pools(epoch: int, first: int = 0, seed: int = 1) -> list[list[tuple[str, ...]]]:
        found = []
        for pool in context_task._Source(text, ["text"], seed).epoch(epoch, first):
            taken = pool.take(np.arange(len(pool)))
            columns = [[vocabulary.words[i] for i in of.ids[1::3]] for of in taken]
            found.append(list(zip(*columns, strict=True)))
        return found

    epochs = [pools(epoch) for epoch in range(4)]
    every = [(f"w{i}", f"w{i - 1}", f"w{i + 1}") for i in range(1, 11)]  # before, behind
    for found in epochs:
        assert sorted(map(len, found)) == [1, 3, 3, 3]
        assert sorted(row for pool in found for row in pool) == sorted(every)
    assert any(epoch != epochs[0] for epoch in epochs[1:])
    assert any(pools(epoch, seed=2) != epochs[epoch] for epoch in range(4))
    assert [pools(3, first) for first in range(5)] == [epochs[3][first:] for first in range(5)]


def judged(n: int = 20) -> LabelledPairs:
    random = np.random.default_rng(1)
    words = zip(*(random.choice(of, n) for of in (ANIMALS, ANIMALS, VERBS, VERBS)), strict=True)
    rows = [
        (f"The {a} {v}.", f"So the {b} {w}.", float(2 * (a == b) + 2 * (v == w)))
        for a, b, v, w in words
    ]
    first, second, scores = zip(*rows, strict=True)
    return labelled(first, second, scores)


def test_compare_spaces(tmp_path: Path, story: str) -> None:
    train(story, tmp_path / "m", vector="mean", steps=2)
    model = load_encoder(tmp_path / "m")
    data = judged()
    found = compare_spaces(model, [data, data], steps=3)
    states = [f"{how} {step}" for step in (1, 2, 3) for how in ("concat", "mean")]
    assert list(map(str, found)) == ["encoder", *states]
    for space, agreement in found.items():
        one = in_space(model, space)
        first, second = one.embed(data.first), one.embed(data.second)
        for name, compare in (("dot", dots), ("cosine", cosines)):
            pearson = 100 * np.corrcoef(compare(first, second), data.scores)[0, 1]
            spearman = 100 * spearmanr(compare(first, second), data.scores).statistic
            assert agreement[name] == {"STS 2014": pytest.approx(pearson, abs=0.05)}
            found_ranks = agreement[f"{name}_spearman"]
            assert found_ranks == {"STS 2014": pytest.approx(spearman, abs=0.05)}
    assert isinstance(model.encoder, Context)
    assert (model.encoder.vector, model.encoder.steps) == ("mean", 2)
    in_space(model, Space("concat", 3)).save(tmp_path / "other")
    other = load_encoder(tmp_path / "other")
    assert isinstance(other.options, SystemOptions) and other.options.context is not None
    assert other.dim == 2 * 3 * 12 and other.options.context.vector == "concat"


@pytest.mark.parametrize("encoder", ["gru", "bow"])
def test_all_weights_start_uniformly(encoder: str) -> None:
    """From U[−0.1, 0.1], word vectors included; normalisation starts as the identity."""
    options = options_of(encoder, "gru").replace(dim=40, hidden=40 if encoder == "gru" else None)
    texts = [pa.array([f"word{i}" for i in range(200)])]
    model = context_task.untrained(options, texts, 1)
    matrix = words_of(model)
    for weight in (*(w for w in model.encoder.parameters() if w.dim() > 1), matrix):
        assert -0.1 <= weight.min() < -0.095 and 0.095 < weight.max() <= 0.1
        assert weight.var().item() == pytest.approx(0.2**2 / 12, rel=0.08)
    assert matrix[0].abs().max() > 0.05  # the unknown word's
    for name, vector in model.encoder.named_parameters():
        if vector.dim() == 1:
            assert (vector == (1 if name.endswith("weight") else 0)).all(), name
    again = context_task.untrained(options.replace(dim=40), texts, 1)
    assert torch.equal(words_of(again), matrix)


def test_sentences_are_truncated_at_evaluation_too(tmp_path: Path, story: str) -> None:
    train(story, tmp_path / "m", "bow", max_words=3)
    model = load_encoder(tmp_path / "m")
    long, short = model.embed(["the dog often runs and eats", "the dog often"])
    # A product of matrices may round its rows otherwise.
    np.testing.assert_allclose(long, short, rtol=0, atol=1e-6)
    assert np.abs(long - model.embed(["the dog eats"])[0]).max() > 1e-3


def words_of(model: SentenceEncoder) -> torch.Tensor:
    """The word vectors of the model's encoder."""
    return embedding_matrices(model.encoder)["encoder.input.table"].weight


def test_words_of_other_vectors_through_a_linear_map(tmp_path: Path, story: str) -> None:
    metrics = train(story, tmp_path / "m")
    model = load_encoder(tmp_path / "m")
    own = model.vocabularies["words"].words
    weight = words_of(model).double().numpy()
    random = np.random.default_rng(0)
    turn = random.standard_normal((6, 12))
    # Vectors from which the map gives the model's own exactly, but for one word.
    known = weight[3:] @ np.linalg.pinv(turn)
    words = [*own[3:], "wolf", "owl"]
    matrix = np.concatenate([known, random.standard_normal((2, 6))]).astype(np.float32)
    larger, added = expanded(model, WordVectors(words, matrix))
    assert added == 2 and larger.vocabularies["words"].words == [*own, "wolf", "owl"]
    linear = np.linalg.lstsq(known, weight[3:], rcond=None)[0]
    found = words_of(larger).numpy()
    assert np.array_equal(found[: len(own)], weight.astype(np.float32))
    assert np.allclose(found[len(own) :], matrix[-2:] @ linear, atol=1e-4)

    larger.save(tmp_path / "larger")
    loaded = in_space(load_encoder(tmp_path / "larger"), Space("mean", 2))
    texts = ["The dog runs.", "The wolf runs."]
    before = in_space(load_encoder(tmp_path / "m"), Space("mean", 2)).embed(texts)
    assert np.allclose(loaded.embed(texts)[0], before[0], atol=1e-6)  # predicts what it did
    assert not np.allclose(loaded.embed(texts)[1], before[1], atol=1e-3)

    write_vectors(tmp_path / "vectors.txt", words, matrix)
    assert train(story, tmp_path / "e", expand=str(tmp_path / "vectors.txt"))["expanded"] == 2
    assert metrics["vocabulary"] == len(load_encoder(tmp_path / "e").vocabularies["words"]) - 2
    with pytest.raises(UserError, match="1 of the text's words have vectors there"):
        expanded(model, WordVectors(["dog", "owl"], matrix[:2]))
