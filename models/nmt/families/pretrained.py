"""Models in Hugging Face's format: config.json, weights, and the files of a tokeniser."""

from __future__ import annotations

import hashlib
import logging
import pickle
import random
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from paraloom.models import hub
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.memory import bounded_by_files
from paraloom.models.nmt.convert import conversion_errors
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.nmt.families.subwords import (
    SentencePieces,
    Subwords,
    TokenizerJson,
    load_sentencepiece,
    load_tokenizer,
)
from paraloom.models.nmt.weights import check_finite
from paraloom.models.structured import check_sizes, read_json

if TYPE_CHECKING:
    from paraloom.models.nmt.families.torch_model import TorchModel

CONVERSION = 1
"""Bump when `convert` writes other files for the same model."""
TOLERANCE = 1e-3
"""Largest difference of a log probability per subword between torch and a converted model."""
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
            "pytorch_model.bin.index.json")  # fmt: skip
_READ = {".json", ".bin", ".safetensors", ".model", ".spm"}  # what a conversion reads
_UNLIMITED = 16_000  # positions of a model with relative positions
_MOST_UNUSED = 1 << 16  # entries of a vocabulary without a token
# Transformers builds the network by these numbers before it looks at the weights.
_LARGEST = {
    r".*layers": 1_000,
    r"d_model|hidden_size|n_positions|max_position_embeddings": 1 << 14,
    r"d_kv|d_ff|.*_dim|.*heads|.*_buckets": 1 << 16,
}


class PretrainedModel(NmtModel):
    """A model of Transformers. A family is a subclass with its classes, files and tags.

    Args:
        config: the content of config.json.
    """

    architecture: ClassVar[str]
    """The model's class in `transformers`; no other class is ever loaded."""
    loader: ClassVar[str]
    """The class in `ctranslate2.converters.transformers` that converts it."""
    sentencepiece: ClassVar[tuple[str, ...]] = ("sentencepiece.bpe.model",)
    """Names that the SentencePiece model of both languages may have; the first found is read."""

    def __init__(self, path: Path, config: dict[str, Any], languages: Languages) -> None:
        self.path, self.config, self.languages = path, config, languages
        check_sizes(path / "config.json", config, _LARGEST)
        hub.check_settings(path / "config.json", config)
        for index in path.glob("*.index.json"):
            hub.check_index(index)
        if not any((path / name).is_file() for name in _WEIGHTS):
            raise UserError(
                f"{path / _WEIGHTS[0]}: missing from the model folder (or {_WEIGHTS[2]})"
            )
        self.check_tokenizer()
        self.layout = self.make_layout()
        self._check_tokens()

    @abstractmethod
    def read_vocabulary(self) -> list[str]:
        """The tokens by id, from the tokeniser's files; may be shorter than the embeddings."""

    @abstractmethod
    def make_layout(self) -> Any:
        """The tokens around subwords, for the languages."""

    @cached_property
    def tokens(self) -> list[str]:
        """The vocabulary by id, as long as the embeddings."""
        return self.filled_up(self.read_vocabulary(), "vocab_size")

    @property
    def target_tokens(self) -> list[str]:
        """The decoder's vocabulary by id."""
        return self.tokens

    def _check_tokens(self) -> None:
        """Check that the vocabularies have the tokens that the model is given, or must not give."""
        layout = self.layout
        start = [layout.decoder_start] if layout.decoder_start else []
        source = [*layout.source_prefix, *layout.source_suffix]
        target = [*start, *layout.target_prefix, *layout.barred]
        for tokens, used in ((self.tokens, source), (self.target_tokens, target)):
            missing = {"<unk>", "</s>", *used}.difference(tokens)
            if missing:
                raise UserError(f"{self.path}: the tokeniser has no {min(missing)}")

    def number(self, key: str) -> int:
        """A whole number in config.json."""
        value = self.config.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{self.path / 'config.json'}: {key} must be a whole number")
        return value

    def filled_up(self, tokens: list[str], key: str) -> list[str]:
        """A vocabulary as long as its embeddings, which a key of config.json tells."""
        size = self.number(key)
        if size > len(tokens) + _MOST_UNUSED:
            raise UserError(
                f"{self.path / 'config.json'}: {key} is {size:,}, but the tokeniser has "
                f"{len(tokens):,} tokens"
            )
        return tokens[:size] + [f"<unused_{number}>" for number in range(size - len(tokens))]

    def token(self, key: str) -> str:
        """The token of the target that a key of config.json names by id."""
        number = self.number(key)
        if not 0 <= number < len(self.target_tokens):
            raise UserError(f"{self.path / 'config.json'}: {key} is not in the vocabulary")
        return self.target_tokens[number]

    @property
    def positions(self) -> int:
        """Most tokens of a source, and of a target, tags and ends of sentence included."""
        value = self.config.get("max_position_embeddings")
        return value if isinstance(value, int) and value > 0 else _UNLIMITED

    @cached_property
    def digest(self) -> str:
        """See `NmtModel`."""
        total = hashlib.sha256(f"{CONVERSION}\0{type(self).__name__}\n".encode())
        for path in sorted(self.path.iterdir()):
            if path.is_file() and path.suffix in _READ:
                total.update(f"{path.name}\0{digest(path)}\n".encode())
        return total.hexdigest()

    # Tokeniser

    @property
    def _sentencepiece(self) -> Path | None:
        paths = (self.path / name for name in self.sentencepiece)
        return next((path for path in paths if path.is_file()), None)

    def check_tokenizer(self) -> None:
        """Check that the tokeniser's files exist."""
        if not self._sentencepiece and not (self.path / "tokenizer.json").is_file():
            raise UserError(
                f"{self.path / self.sentencepiece[0]}: the tokeniser is missing from the model "
                "folder (or tokenizer.json)"
            )

    def subwords(self) -> Subwords:
        """See `NmtModel`. SentencePiece is several times faster than tokenizer.json."""
        if self._sentencepiece:
            return SentencePieces(self._sentencepiece, prompt=self.layout.prompt)
        return TokenizerJson(self.path / "tokenizer.json", prompt=self.layout.prompt)

    def tokenizer_json(self) -> list[str] | None:
        """The tokens by id of tokenizer.json; None if there is none."""
        path = self.path / "tokenizer.json"
        if not path.is_file():
            return None
        by_token = load_tokenizer(path).get_vocab(with_added_tokens=True)
        return sorted(by_token, key=by_token.__getitem__)

    def pieces(self) -> list[str]:
        """The pieces of the SentencePiece model by id."""
        assert self._sentencepiece is not None
        model = load_sentencepiece(self._sentencepiece)
        found: list[str] = model.id_to_piece(list(range(model.get_piece_size())))
        return found

    # Weights

    def torch_model(self) -> TorchModel:
        """Load the weights in torch, in float32."""
        import torch
        import transformers

        from paraloom.models.nmt.families.torch_model import TorchModel

        kind = getattr(transformers, self.architecture)
        config = self._transformers_config(kind.config_class)
        try:
            with _quiet(), bounded_by_files(self.path):
                network, report = kind.from_pretrained(
                    str(self.path),
                    config=config,
                    dtype=torch.float32,
                    local_files_only=True,
                    trust_remote_code=False,
                    weights_only=True,
                    output_loading_info=True,
                )
        except UserError:
            raise
        except Exception as error:  # the library's loader raises many types
            if _is_unsafe(error):
                raise UserError(
                    f"{self.path}/pytorch_model.bin: refused, it holds code or objects, or is "
                    "damaged; get the model as safetensors"
                ) from error
            raise UserError(f"{self.path}: the weights cannot be read ({_short(error)})") from error
        missing = sorted(report["missing_keys"])
        if missing or report.get("mismatched_keys"):
            raise UserError(
                f"{self.path}: the weights do not fit config.json "
                f"({missing[0] if missing else 'their sizes differ'})"
            )
        check_finite(network, self.path)
        return TorchModel(network, self.tokens, self.target_tokens, self.layout)

    def _transformers_config(self, kind: Any) -> Any:
        try:
            with _quiet():
                return kind.from_dict(self.config)
        except Exception as error:  # the library's validation raises types of its own
            raise UserError(f"{self.path / 'config.json'}: {_short(error)}") from error

    # Conversion

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`. The result is compared with torch before it is used."""
        import torch

        model = self.torch_model()
        with conversion_errors(self.path, "transformers"):
            with torch.no_grad():
                spec = self.make_spec(model.network)
            spec.config.bos_token = self.layout.decoder_start or "<s>"
            spec.config.eos_token = "</s>"
            spec.config.unk_token = "<unk>"
            spec.config.decoder_start_token = self.layout.decoder_start
            spec.register_source_vocabulary(self.tokens)
            spec.register_target_vocabulary(self.target_tokens)
            spec.validate()
            spec.optimize(quantization=None)
            spec.save(str(out))
            self._compare(model, out)
        return self.positions, self.positions

    def make_spec(self, network: Any) -> Any:
        """The network as CTranslate2's converters describe it."""
        from ctranslate2.converters import transformers as converters

        return getattr(converters, self.loader)().get_model_spec(network)

    def _compare(self, model: TorchModel, out: Path) -> None:
        """Compare log probabilities of random sentences; conversions can go wrong silently."""
        import ctranslate2

        lengths = (3, 5, 8, 13, 21, 34)
        sources = _random_sentences(self.tokens, lengths)
        targets = _random_sentences(self.target_tokens, lengths)[::-1]
        expected = model.log_probs(sources, targets)
        prefix = list(self.layout.target_prefix)
        converted = ctranslate2.Translator(str(out), device="cpu", compute_type="float32")
        found = converted.score_batch(
            [self.layout.source(source) for source in sources],
            [prefix + target for target in targets],
            max_input_length=0,
        )
        apart = [
            abs(sum(result.log_probs[-len(truth) :]) - sum(truth)) / len(truth)
            for result, truth in zip(found, expected, strict=True)
        ]
        if not all(difference <= TOLERANCE for difference in apart):  # NaN too
            worst = max(apart)
            raise UserError(
                f"{self.path}: converted to CTranslate2 it gives other probabilities than in torch "
                f"(by {worst:.3g} per subword); choose engine transformers"
            )


class FairseqVocabulary(PretrainedModel):
    """A model that fairseq trained: its special tokens come first, then SentencePiece's pieces,
    languages, and `<mask>`.
    """

    tokenization: ClassVar[str]
    """The module in `transformers.models` that lists the languages."""

    def read_vocabulary(self) -> list[str]:
        """See `PretrainedModel`."""
        if tokens := self.tokenizer_json():
            return tokens
        module = import_module(f"transformers.models.{self.tokenization}")
        languages = module.FAIRSEQ_LANGUAGE_CODES
        return ["<s>", "<pad>", "</s>", "<unk>", *self.pieces()[3:], *languages, "<mask>"]


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return read_json(path, dict[str, Any], "a JSON object")


def read_vocabulary(path: Path) -> list[str]:
    """The tokens by id of a vocab.json."""
    by_token = read_object(path)
    if set(map(str, by_token.values())) != set(map(str, range(len(by_token)))):
        raise UserError(f"{path}: must give each token an id of its own, from 0 on")
    return sorted(by_token, key=lambda token: int(by_token[token]))


def _random_sentences(tokens: Sequence[str], lengths: Sequence[int]) -> list[list[str]]:
    rng = random.Random(0)
    words = [token for token in tokens if token[:1] not in "<>_" and len(token) > 1] or tokens
    return [rng.choices(words, k=length) for length in lengths]


def _is_unsafe(error: Exception) -> bool:
    """Whether torch's safe loading refused the weights."""
    cause = error.__cause__ or error.__context__
    refused = isinstance(error, pickle.UnpicklingError) or isinstance(cause, pickle.UnpicklingError)
    return refused or "weights_only" in str(error)  # the format of torch before 0.1.10


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Transformers' warnings and progress bars."""
    from transformers import utils

    theirs: Any = utils.logging
    level, bars = theirs.get_verbosity(), theirs.is_progress_bar_enabled()
    theirs.set_verbosity(logging.CRITICAL)
    theirs.disable_progress_bar()
    try:
        yield
    finally:
        theirs.set_verbosity(level)
        if bars:
            theirs.enable_progress_bar()


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
