"""Similarity according to models of sentence-transformers: bi-encoders and cross-encoders."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models import sentence_models
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.scorers.base import Resource, scorer
from paraloom.models.scorers.learned.probability import distinct_pairs
from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

_BATCH = {"cpu": 32, "cuda": 256}  # texts or pairs per batch; "cuda" is for pairs alone
_ON_GPU = 1024  # texts per batch on a GPU
_CHARACTERS = 16_384  # characters per batch in CTranslate2, including padding


def open_sentence_model(path: Path, compute_type: str = "auto") -> SentenceTransformer:
    """Load a model from a folder or the Hub. On a GPU, the model uses float16. `compute_type`
    is passed to `accelerate`."""
    from paraloom.models.scorers.fast_networks import SENTENCES, accelerate

    model = sentence_models.load_sentence_model(sentence_models.find_model(str(path)))

    def cosines() -> np.ndarray:
        vectors = encode(model, [*SENTENCES])
        return np.asarray(vectors @ vectors.T)

    accelerate(model, cosines, compute_type)
    return model.half() if model.device.type == "cuda" else model


def open_cross_encoder(path: Path, compute_type: str = "auto") -> CrossEncoder:
    """Load a model that scores pairs. `compute_type` is passed to `accelerate`."""
    from sentence_transformers import CrossEncoder

    from paraloom.models.scorers.fast_networks import SENTENCES, accelerate

    folder = sentence_models.find_cross_encoder(str(path))
    model: CrossEncoder = sentence_models.load(
        lambda: CrossEncoder(str(folder), local_files_only=True), folder
    )
    label = _entailment(model)
    if model.num_labels != 1 and label is None:
        raise UserError(
            f"score.cross_encoder_model: {path} has the labels {', '.join(_labels(model))}; choose "
            "a model with the label entailment, or with one output, such as a model trained on "
            "the STS Benchmark"
        )
    pairs = [(one, other) for one in SENTENCES for other in SENTENCES[:3]]
    accelerate(model, lambda: _predict(model, pairs, softmax=label is not None), compute_type)
    return model


def _resource(name: str, load: Callable[..., Any]) -> Resource:
    remedy = f"a model: set score.{name} to its folder or its name on the Hub"
    int8 = partial(load, compute_type="int8")
    return Resource(name=name, open=load, open_int8=int8, remedy=remedy, is_model=True)


@scorer(
    meaning="cosine of the two sides under a model of sentence-transformers",
    unit="cosine",
    range=(-1.0, 1.0),
    resource=_resource("sentence_model", open_sentence_model),
    version=2,
    whole_shard=True,
)
def sentence_similarity(pairs: PairText, sentence_model: SentenceTransformer) -> np.ndarray:
    """Return the cosine of both sides' sentence vectors: float32 [n] in [-1, 1].

    The value is 0 if a side is empty. Texts that exceed the model's limit are truncated. Rounding
    errors depend on the other texts in the batch, and are below 1e-5 in float32 and below 1e-2 in
    float16 on GPUs. int8 changes cosines by up to about 0.03.
    """
    sides = pairs.reference_text, pairs.translation_text
    texts = pa.concat_arrays(sides).cast(pa.string())
    distinct = texts.unique()
    distinct = distinct.take(pc.sort_indices(distinct))  # the same batches if sides are swapped
    with in_one_line("score.sentence_model: the model fails"):
        vectors = encode(sentence_model, distinct.to_pylist())
    first, second = np.split(pc.index_in(texts, value_set=distinct).to_numpy(), 2)
    cosine = np.einsum("nd,nd->n", vectors[first], vectors[second], dtype=np.float32)
    empty = pc.or_(*(pc.equal(pc.utf8_trim_whitespace(side), "") for side in sides))
    return np.where(empty.to_numpy(zero_copy_only=False), np.float32(0), cosine.clip(-1, 1))


def encode(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    """Return unit vectors of texts: float32 [n, dim]."""
    if model.device.type == "cuda":
        return encode_on_gpu(model, texts)

    def work(batch: list[str]) -> np.ndarray:
        return model.encode(
            batch, batch_size=_BATCH["cpu"], normalize_embeddings=True, show_progress_bar=False
        ).astype(np.float32, copy=False)

    return _in_batches(model, work, texts, [len(text) for text in texts])


def _in_batches(
    model: Any, work: Callable[[list[Any]], np.ndarray], items: list[Any], lengths: list[int]
) -> np.ndarray:
    """Apply `work` to all items. If CTranslate2 computes the model, threads apply `work` to batches
    of similarly long items. Otherwise sentence-transformers makes batches in one call of `work`."""
    from paraloom.models.scorers.fast_networks import parallel

    if not (threads := parallel(model)) or not items:
        return work(items)
    import torch

    batches: list[list[int]] = []
    for row in sorted(range(len(items)), key=lambda row: -lengths[row]):
        size = len(batches[-1]) if batches else _BATCH["cpu"]
        if size == _BATCH["cpu"] or (size + 1) * lengths[batches[-1][0]] > _CHARACTERS:
            batches.append([])
        batches[-1].append(row)
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # each thread of the pool uses one core
    try:
        with ThreadPoolExecutor(threads + 1) as pool:  # one thread tokenises while others compute
            found = list(pool.map(lambda rows: work([items[row] for row in rows]), batches))
    finally:
        torch.set_num_threads(before)
    values = np.concatenate(found)
    values[np.concatenate(batches)] = values.copy()
    return values


def encode_on_gpu(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    """Encode texts on a GPU while threads tokenise the next batches. With
    `SentenceTransformer.encode`, the GPU is idle most of the time."""
    import torch

    if not texts:
        return np.zeros((0, 0), np.float32)
    order = np.argsort([-len(text) for text in texts], kind="stable")
    batches = np.split(order, range(_ON_GPU, len(order), _ON_GPU))
    prompt = model.prompts.get(model.default_prompt_name or "")
    model.eval()

    def tokenised(rows: np.ndarray) -> dict[str, Any]:
        features = model.preprocess([texts[row] for row in rows], prompt=prompt)
        tensors = {name: of for name, of in features.items() if isinstance(of, torch.Tensor)}
        if model.device.type == "cuda":
            tensors = {name: of.pin_memory() for name, of in tensors.items()}
        moved = {name: of.to(model.device, non_blocking=True) for name, of in tensors.items()}
        return {**features, **moved}

    found = []
    with torch.inference_mode(), ThreadPoolExecutor(4) as threads:
        for features in threads.map(tokenised, batches):
            found.append(model(features)["sentence_embedding"].float())
        vectors = torch.nn.functional.normalize(torch.cat(found)).cpu().numpy()
    unsorted = np.empty_like(vectors)
    unsorted[order] = vectors
    return unsorted


@scorer(
    meaning="score of the pair by a cross-encoder of sentence-transformers",
    unit="score",
    range=(None, None),
    resource=_resource("cross_encoder_model", open_cross_encoder),
    version=2,
    whole_shard=True,
)
def cross_encoder(pairs: PairText, cross_encoder_model: CrossEncoder) -> np.ndarray:
    """Return the model's score of (reference, translation): float32 [n].

    An entailment model gives the lower of two probabilities: that the reference entails the
    translation, and that the translation entails the reference.
    """
    distinct, back = distinct_pairs(pairs.reference_text, pairs.translation_text)
    label = _entailment(cross_encoder_model)
    directions = distinct if label is None else [*distinct, *(pair[::-1] for pair in distinct)]
    with in_one_line("score.cross_encoder_model: the model fails"):
        scores = _predict(cross_encoder_model, directions, softmax=label is not None)
    values = scores.reshape(len(directions), -1)[:, label or 0]
    return np.asarray(values.reshape(-1, len(distinct)).min(axis=0)[back])


def _predict(model: CrossEncoder, pairs: list[tuple[str, str]], *, softmax: bool) -> np.ndarray:
    """Return the outputs of a cross-encoder: float32 [n] or [n, labels]."""

    def work(batch: list[tuple[str, str]]) -> np.ndarray:
        size = _BATCH.get(model.device.type, 32)
        made = model.predict(batch, batch_size=size, show_progress_bar=False, apply_softmax=softmax)
        return np.asarray(made, np.float32)

    return _in_batches(model, work, pairs, [len(one) + len(other) for one, other in pairs])


def _entailment(model: CrossEncoder) -> int | None:
    labels = _labels(model) if model.num_labels > 1 else []
    return labels.index("entailment") if "entailment" in labels else None


def _labels(model: Any) -> list[str]:
    return [model.config.id2label[i].lower() for i in range(model.num_labels)]
