"""A sentence encoder with vocabularies and head, and its saved folder."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import nn

from paraloom.models.embeddings.comparison import Compare, ComparedModel, Scores, cosines, dots
from paraloom.models.embeddings.encoders import build_encoder, embedding_matrices, kinds
from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.export import folder as files
from paraloom.models.embeddings.export.tokenizer_words import equal_share, words_tokenizer
from paraloom.models.embeddings.options import EmbeddingOptions, EncoderSettings
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.vocabulary import Vocabulary, ids_by_kind
from paraloom.models.errors import UserError, reading
from paraloom.models.files import atomic_folder
from paraloom.models.printing import say
from paraloom.models.structured import read_json
from paraloom.models.text.tokens import as_texts

_HEAD = "head.safetensors"


class SentenceEncoder:
    """Sentence encoder with vocabularies, and optionally a head that predicts labels
    (`paraloom.papers`).

    >>> encoder = SentenceEncoder.load("runs/sample/embeddings")    # doctest: +SKIP
    >>> encoder.similarity(["A dog runs."], ["A dog is running."])  # doctest: +SKIP
    array([0.93], dtype=float32)
    """

    def __init__(
        self,
        encoder: Encoder,
        vocabularies: Mapping[Kind, Vocabulary],
        options: EmbeddingOptions,
        head: Any = None,
    ) -> None:
        self.encoder = encoder
        self.vocabularies = dict(vocabularies)
        self.options = options
        self.head = head

    @classmethod
    def load(cls, folder: Path | str, *, device: str = "cpu") -> "SentenceEncoder":
        """Load a saved model; the folder need not be trusted."""
        folder = Path(folder)
        path = folder / "config.json"
        settings = read_json(path, EncoderSettings, "the configuration of an encoder")
        options = settings.options
        try:
            names = kinds(options.model)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from error
        vocabularies = {
            kind: Vocabulary.load(folder / f"{kind}.txt", settings.language) for kind in names
        }
        with reading(path), torch.device("meta"):  # allocates nothing: sizes are not checked yet
            vectors = {kind: torch.zeros(len(v), options.dim) for kind, v in vocabularies.items()}
            encoder = build_encoder(options, vectors, outputs=settings.outputs)
            head = None if settings.head is None else options.open_head(settings.head)
        with reading(folder / files.WEIGHTS):
            state = files.read_weights(folder, native=settings.sentence_transformers.native)
            encoder.load_state_dict(state, assign=True)
        if head is not None:
            with reading(folder / _HEAD):
                head.load_state_dict(files.read_tensors(folder / _HEAD), assign=True)
            head.to(device).eval()
        return cls(encoder.float().to(device).eval(), vocabularies, options, head)

    @property
    def dim(self) -> int:
        """Length of a sentence vector."""
        return self.encoder.dim

    @property
    def language(self) -> str:
        """Language of the sentences, for tokenising."""
        return next(iter(self.vocabularies.values())).language

    def embed(
        self, sentences: Sequence[str] | pa.StringArray, batch_size: int = 4096
    ) -> NDArray[np.float32]:
        """Embed sentences, [n, dim]; zeros for a sentence without tokens."""
        text = as_texts(sentences)
        vectors = np.empty((len(text), self.dim), np.float32)
        training = self.encoder.training
        self.encoder.eval()
        with torch.inference_mode():
            for start in range(0, len(text), batch_size):
                ids = ids_by_kind(self.vocabularies, text[start : start + batch_size])
                vectors[start : start + batch_size] = self.encoder(ids).float().cpu().numpy()
        self.encoder.train(training)
        return vectors

    def similarity(
        self, a: Sequence[str] | pa.StringArray, b: Sequence[str] | pa.StringArray
    ) -> Scores:
        """Compare sentences a[i] and b[i] by `compare`, [n]. A cosine is 0 if a sentence has no
        token."""
        return self.compare(self.embed(a), self.embed(b))

    @property
    def compare(self) -> Compare:
        """Function from both sides' vectors to scores: the labels that the head, if any, predicts;
        else dot products, if the encoder was trained on them; else cosines."""
        if self.head is not None:
            predict: Compare = self.head.predict
            return predict
        return dots if self.options.score == "dot" else cosines

    def named(self, name: str) -> ComparedModel:
        """Wrap the model for `evaluate_models`."""
        scale = None if self.head is None else (self.head.lowest, self.head.highest)
        return ComparedModel(name, self.embed, self.compare, scale)

    def save(
        self,
        folder: Path | str,
        *,
        metrics: Mapping[str, Any] | None = None,
        log: Path | None = None,
        texts: Iterable[pa.StringArray] = (),
    ) -> None:
        """Write the model folder atomically: weights, config, vocabularies.

        `metrics` are written to metrics.json, and the file `log` is copied to metrics.jsonl. A
        message is printed if sentence-transformers tokenises some of the first `texts` differently,
        or needs Paraloom's module to load the folder.
        """
        with atomic_folder(folder) as temporary:
            found = self.write(temporary, texts)
            if metrics is not None:
                (temporary / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
            if log is not None and log.exists():
                shutil.copyfile(log, temporary / "metrics.jsonl")
        if notice := _notice(found):
            say(f"paraloom: {folder}: {notice}")

    def write(
        self, folder: Path, texts: Iterable[pa.StringArray] = (), *, native: bool = True
    ) -> dict[str, Any]:
        """Write the model's files into an existing folder; return how sentence-transformers loads
        them: with the library's own module if one fits and `native` allows it."""
        vocabulary = next(iter(self.vocabularies.values()))
        native = native and files.is_static_embedding(self.encoder, tags=vocabulary.tags)
        tokenizer = words_tokenizer(vocabulary) if native else None
        files.write(folder, weights(self.encoder), tokenizer)
        found: dict[str, Any] = {"native": native}
        if tokenizer is not None:
            found["equal_sentences"] = equal_share(tokenizer, vocabulary, texts)
        for kind, vocabulary in self.vocabularies.items():
            vocabulary.save(folder / f"{kind}.txt")
        config = {
            "format": 2,
            # Folders may be shared: options keep file names without local paths.
            "options": self.options.map_files(lambda key, path, mark: Path(path).name).chosen(),
            "vocabularies": {kind: len(words) for kind, words in self.vocabularies.items()},
            "dim": self.dim,
            "reads_order": self.encoder.reads_order or "sentence-trigrams" in self.vocabularies,
            "language": self.language,
            "sentence_transformers": found,
        }
        if self.encoder.outputs is not None:
            config["outputs"] = self.encoder.outputs
        if self.head is not None:
            config["head"] = self.head.settings()
            save_file(weights(self.head), folder / _HEAD)
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        return found


def _notice(found: Mapping[str, Any]) -> str | None:
    if not found["native"]:
        return (
            "sentence-transformers loads this folder only where Paraloom is installed, with "
            "trust_remote_code=True; a word-avg without tags does not need Paraloom"
        )
    share = found["equal_sentences"]
    same = f"in sentence-transformers, {share:.2%} of sentences have the same tokens"
    return None if share == 1 else same


def weights(encoder: nn.Module) -> dict[str, torch.Tensor]:
    """All present weights, on the CPU, by name."""
    state = {name: tensor.detach() for name, tensor in encoder.state_dict().items()}
    for name, matrix in embedding_matrices(encoder).items():
        state[f"{name}.weight"] = matrix.current()
    return {name: tensor.cpu().contiguous() for name, tensor in state.items()}


load_encoder = SentenceEncoder.load
