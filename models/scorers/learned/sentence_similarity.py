"""Similarity by any model of sentence-transformers: one vector per side, or both sides together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from paraloom.models import sentence_models
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.scorers.base import Resource, Scorer
from paraloom.models.scorers.learned.reference_score import distinct_pairs
from paraloom.models.text.tokens import PairText

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

_BATCH = {"cpu": 32, "cuda": 256}  # texts per batch, by device
_ON_GPU = 1024  # texts per batch, with one vector each


def sentence_similarity(pairs: PairText, sentence_model: SentenceTransformer) -> np.ndarray:
    """Cosine of both sides' sentence vectors: float32 [n] in [-1, 1]; 0 if a side is empty.

    Each distinct text is encoded once, in batches of equal length. The other texts in a batch
    affect a value only by rounding (below 1e-5 in float32, 1e-2 in float16, which GPUs use), and
    swapping the sides does not change it. Texts above the model's limit are truncated, as in the
    library.
    """
    sides = pairs.reference_text, pairs.translation_text
    texts = pa.concat_arrays(sides).cast(pa.string())
    distinct = texts.unique()
    distinct = distinct.take(pc.sort_indices(distinct))  # the same batches if sides are swapped
    encode = encode_on_gpu if sentence_model.device.type == "cuda" else _encode
    with in_one_line("score.sentence_model: the model fails"):
        vectors = encode(sentence_model, distinct.to_pylist())
    first, second = np.split(pc.index_in(texts, value_set=distinct).to_numpy(), 2)
    cosine = np.einsum("nd,nd->n", vectors[first], vectors[second], dtype=np.float32)
    empty = pc.or_(*(pc.equal(pc.utf8_trim_whitespace(side), "") for side in sides))
    return np.where(empty.to_numpy(zero_copy_only=False), np.float32(0), cosine.clip(-1, 1))


def _encode(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    """Unit vectors of texts, float32 [n, dim]."""
    return model.encode(
        texts, batch_size=_BATCH["cpu"], normalize_embeddings=True, show_progress_bar=False
    ).astype(np.float32, copy=False)


def encode_on_gpu(model: SentenceTransformer, texts: list[str]) -> np.ndarray:
    """Encode on a GPU: threads tokenise the next batches meanwhile, and nothing waits for the GPU
    before the end. With the library's loop the GPU idles most of the time."""
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


def cross_encoder(pairs: PairText, cross_encoder_model: CrossEncoder) -> np.ndarray:
    """The model's score of (reference, translation): float32 [n]; equal pairs are scored once.

    From an entailment model, the lower of two probabilities: that the reference entails the
    translation, and the reverse. Other pairs in a batch affect a value only by rounding, as in
    `sentence_similarity`.
    """
    distinct, back = distinct_pairs(pairs.reference_text, pairs.translation_text)
    label = _entailment(cross_encoder_model)
    directions = distinct if label is None else [*distinct, *(pair[::-1] for pair in distinct)]
    with in_one_line("score.cross_encoder_model: the model fails"):
        scores = cross_encoder_model.predict(
            directions,
            batch_size=_BATCH.get(cross_encoder_model.device.type, 32),
            show_progress_bar=False,
            apply_softmax=label is not None,
        )
    values = np.asarray(scores, np.float32).reshape(len(directions), -1)[:, label or 0]
    return np.asarray(values.reshape(-1, len(distinct)).min(axis=0)[back])


def _entailment(model: CrossEncoder) -> int | None:
    """Index of the label `entailment`; None for a model with one output."""
    labels = _labels(model) if model.num_labels > 1 else []
    return labels.index("entailment") if "entailment" in labels else None


def _labels(model: Any) -> list[str]:
    return [model.config.id2label[i].lower() for i in range(model.num_labels)]


def find_sentence_model(name: str) -> Path:
    """Find the folder of `score.sentence_model`."""
    return sentence_models.find_model(name, "score.sentence_model", "modules.json")


def find_cross_encoder(name: str) -> Path:
    """Find the folder of `score.cross_encoder_model`."""
    return sentence_models.find_model(name, "score.cross_encoder_model", "config.json")


def open_sentence_model(path: Path) -> SentenceTransformer:
    """Load a model from a folder or the Hub; in float16 on a GPU, if there is one."""
    model = sentence_models.load_sentence_model(find_sentence_model(str(path)))
    return model.half() if model.device.type == "cuda" else model


def open_cross_encoder(path: Path) -> CrossEncoder:
    """Load a model that scores pairs, on a GPU if there is one."""
    from sentence_transformers import CrossEncoder

    folder = find_cross_encoder(str(path))
    model: CrossEncoder = sentence_models.load(
        lambda: CrossEncoder(str(folder), local_files_only=True), folder
    )
    if model.num_labels != 1 and _entailment(model) is None:
        raise UserError(
            f"score.cross_encoder_model: {path} has the labels {', '.join(_labels(model))}; choose "
            "a model with the label entailment, or one number a pair, as for the STS Benchmark"
        )
    return model


SCORERS = {
    "sentence_similarity": Scorer(
        function=sentence_similarity,
        meaning="cosine of the two sides under a model of sentence-transformers",
        unit="cosine",
        range=(-1.0, 1.0),
        resource=Resource(
            name="sentence_model",
            open=open_sentence_model,
            remedy="a model: set score.sentence_model to its folder or its name on the Hub",
            is_model=True,
        ),
        whole_shard=True,
    ),
    "cross_encoder": Scorer(
        function=cross_encoder,
        meaning="score of the pair by a cross-encoder of sentence-transformers",
        unit="score",
        range=(None, None),
        resource=Resource(
            name="cross_encoder_model",
            open=open_cross_encoder,
            remedy="a model: set score.cross_encoder_model to its folder or its name on the Hub",
            is_model=True,
        ),
        whole_shard=True,
    ),
}
