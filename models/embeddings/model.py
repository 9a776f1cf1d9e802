"""A sentence encoder with its vocabularies, and the folder of a saved encoder."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from paraloom.models.embeddings.comparison import Compare, ComparedModel, Scores, cosines, dots
from paraloom.models.embeddings.encoders import build_encoder, embedding_matrices, kinds
from paraloom.models.embeddings.encoders.base import Average, Encoder
from paraloom.models.embeddings.options import EmbeddingOptions, EncoderSettings
from paraloom.models.embeddings.ragged_columns import Kind
from paraloom.models.embeddings.tokenizer_words import equal_share, words_tokenizer
from paraloom.models.embeddings.vocabulary import Vocabulary, ids_by_kind
from paraloom.models.errors import UserError, in_one_line, reading
from paraloom.models.files import atomic_folder
from paraloom.models.printing import say
from paraloom.models.structured import read_json
from paraloom.models.text.tokens import as_texts

_WEIGHTS, _HEAD = "model.safetensors", "head.safetensors"
# Classes that sentence-transformers loads, and the names of their word vectors.
_OUR_MODULE = "paraloom.models.embeddings.sentence_transformer.MosesEncoder"
_THEIR_MODULE = (
    "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"
)
_OUR_NAME, _THEIR_NAME = "input.table.weight", "embeddings"


class SentenceEncoder:
    """A sentence encoder with its vocabularies, and optionally a head that predicts labels.

    >>> encoder = SentenceEncoder.load("runs/sample/embeddings")    # doctest: +SKIP
    >>> encoder.similarity(["A dog runs."], ["A dog is running."])  # doctest: +SKIP
    array([0.93])
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
        """Load a saved encoder. An untrusted folder is safe to load."""
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
        # Untrusted sizes may be huge, so use the meta device, which allocates no memory.
        with reading(path), torch.device("meta"):
            vectors = {kind: torch.zeros(len(v), options.dim) for kind, v in vocabularies.items()}
            encoder = build_encoder(options, vectors, outputs=settings.outputs)
            head = None if settings.head is None else options.open_head(settings.head)
        with reading(folder / _WEIGHTS):
            state = _read_weights(folder, native=settings.sentence_transformers.native)
            encoder.load_state_dict(state, assign=True)
        if head is not None:
            with reading(folder / _HEAD):
                head.load_state_dict(_read_tensors(folder / _HEAD), assign=True)
            head.to(device).eval()
        return cls(encoder.float().to(device).eval(), vocabularies, options, head)

    @property
    def dim(self) -> int:
        """Length of a sentence vector."""
        return self.encoder.dim

    @property
    def language(self) -> str:
        """Language code of the sentences, which decides how they are tokenised."""
        return next(iter(self.vocabularies.values())).language

    def embed(
        self, sentences: Sequence[str] | pa.StringArray, batch_size: int = 4096
    ) -> NDArray[np.float32]:
        """Return the vectors of n sentences, [n, dim]. A sentence without ids has a zero vector."""
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
        """Return the scores of n pairs of sentences, [n], computed by `compare`."""
        if len(a) != len(b):
            raise UserError(f"{len(a)} sentences are compared with {len(b)} sentences")
        return self.compare(self.embed(a), self.embed(b))

    @property
    def compare(self) -> Compare:
        """Function that computes predicted labels, dot products or cosines from vectors."""
        if self.head is not None:
            predict: Compare = self.head.predict
            return predict
        return dots if self.options.score == "dot" else cosines

    def named(self, name: str) -> ComparedModel:
        """Return the encoder in the form that `evaluate_models` accepts."""
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
        """Write the encoder's folder atomically, with `metrics` and a copy of the file `log`.

        Print a message if sentence-transformers needs Paraloom to load the folder, or if the
        folder's tokeniser gives other tokens than Paraloom for some of the first `texts`.
        """
        with atomic_folder(folder) as temporary:
            found = self.write(temporary, texts)
            if metrics is not None:
                (temporary / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
            if log is not None and log.exists():
                shutil.copyfile(log, temporary / "metrics.jsonl")
        if not found["native"]:
            say(
                f"paraloom: {folder}: sentence-transformers loads this folder only where Paraloom "
                "is installed, with trust_remote_code=True; a word-avg without tags does not need "
                "Paraloom"
            )
        elif (share := found["equal_sentences"]) != 1:
            say(
                f"paraloom: {folder}: in sentence-transformers, {share:.2%} of sentences have the "
                "same tokens as in Paraloom"
            )

    def write(
        self, folder: Path, texts: Iterable[pa.StringArray] = (), *, native: bool = True
    ) -> dict[str, Any]:
        """Write the encoder's files into an existing folder.

        If `native` is true, and StaticEmbedding of sentence-transformers can compute the encoder,
        the folder can be loaded without Paraloom. Then the entry `native` of the result is true,
        and the entry `equal_sentences` is the `equal_share` of `texts`.
        """
        vocabulary = next(iter(self.vocabularies.values()))
        average = type(self.encoder) is Average and vocabulary.kind == "words"
        native = native and average and not vocabulary.tags
        found: dict[str, Any] = {"native": native}
        state = weights(self.encoder)
        if native:
            tokenizer = words_tokenizer(vocabulary)
            tokenizer.save(str(folder / "tokenizer.json"))
            found["equal_sentences"] = equal_share(tokenizer, vocabulary, texts)
            state = {_THEIR_NAME: state[_OUR_NAME]}
        save_file(state, folder / _WEIGHTS)
        for kind, vocabulary in self.vocabularies.items():
            vocabulary.save(folder / f"{kind}.txt")
        config = {
            "format": 2,
            # Folders may be shared, so local paths are reduced to file names.
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
        module = _THEIR_MODULE if native else _OUR_MODULE
        for name, content in {
            "config": config,
            "modules": [{"idx": 0, "name": "0", "path": "", "type": module}],
            "config_sentence_transformers": {
                "model_type": "SentenceTransformer",
                "similarity_fn_name": "cosine",
                "prompts": {},
            },
        }.items():
            (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
        return found


def _read_weights(folder: Path, *, native: bool) -> dict[str, Tensor]:
    """Read the weights, and name them as in Paraloom. The names in a `native` folder differ."""
    found = _read_tensors(folder / _WEIGHTS)
    if not native:
        return found
    names = {_THEIR_NAME: _OUR_NAME, "emb_layer.weight": _OUR_NAME}
    if (folder / "1_LSTM").exists():  # format 1 stored an LSTM as three modules
        found |= _read_tensors(folder / "1_LSTM" / _WEIGHTS)
        for number, suffix in enumerate(("", "_reverse")):
            for gate in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
                names[f"encoder.{gate}{suffix}"] = f"directions.{number}.weights.{gate}"
    return {names.get(name, name): tensor for name, tensor in found.items()}


def _read_tensors(path: Path) -> dict[str, Tensor]:
    with in_one_line(f"{path}: cannot be read as safetensors"):
        return load_file(path)


def weights(encoder: nn.Module) -> dict[str, Tensor]:
    """Return all weights by name, on the CPU. Word vectors include pending updates."""
    state = {name: tensor.detach() for name, tensor in encoder.state_dict().items()}
    for name, matrix in embedding_matrices(encoder).items():
        state[f"{name}.weight"] = matrix.current()
    return {name: tensor.cpu().contiguous() for name, tensor in state.items()}


load_encoder = SentenceEncoder.load
