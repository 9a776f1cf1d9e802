"""Models in Hugging Face's format: config.json, weights, and the files of a tokeniser."""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
import random
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from models.errors import UserError
from models.files import digest
from models.nmt.families.base import Languages, NmtModel
from models.nmt.families.subwords import SentencePieces, Subwords, TokenizerJson, load_tokenizer

if TYPE_CHECKING:
    from models.nmt.families.torch_model import TorchModel

CONVERSION = 1
"""Bump when `convert` writes other files for the same model."""
TOLERANCE = 1e-3
"""Largest difference of a log probability per subword between torch and a converted model."""
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
            "pytorch_model.bin.index.json")  # fmt: skip
_READ = {".json", ".bin", ".safetensors", ".model", ".spm"}  # what a conversion reads
_UNLIMITED = 16_000  # positions of a model with relative positions


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
        if not any((path / name).is_file() for name in _WEIGHTS):
            raise UserError(
                f"{path / _WEIGHTS[0]}: missing from the model folder (or {_WEIGHTS[2]})"
            )
        self.check_tokenizer()
        self.layout = self.make_layout()

    @abstractmethod
    def read_vocabulary(self) -> list[str]:
        """The tokens by id, from the tokeniser's files; may be shorter than the embeddings."""

    @abstractmethod
    def make_layout(self) -> Any:
        """The tokens around subwords, for the languages.

        Raises:
            UserError: the model has no such language.
        """

    @cached_property
    def tokens(self) -> list[str]:
        """The vocabulary by id, as long as the embeddings."""
        size = self.number("vocab_size")
        tokens = self.read_vocabulary()[:size]
        if "<unk>" not in tokens:
            raise UserError(f"{self.path}: the tokeniser has no <unk>")
        return tokens + [f"<unused_{number}>" for number in range(size - len(tokens))]

    def number(self, key: str) -> int:
        """A whole number in config.json.

        Raises:
            UserError: it is not there.
        """
        value = self.config.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{self.path / 'config.json'}: {key} must be a whole number")
        return value

    def token(self, key: str) -> str:
        """The token that a key of config.json names by id."""
        number = self.number(key)
        if not 0 <= number < len(self.tokens):
            raise UserError(f"{self.path / 'config.json'}: {key} is not in the vocabulary")
        return self.tokens[number]

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
            if path.is_file() and path.suffix in {
                ".json",
                ".bin",
                ".safetensors",
                ".model",
                ".spm",
            }:
                total.update(f"{path.name}\0{digest(path)}\n".encode())
        return total.hexdigest()

    # Tokeniser

    @property
    def _sentencepiece(self) -> Path | None:
        paths = (self.path / name for name in self.sentencepiece)
        return next((path for path in paths if path.is_file()), None)

    def check_tokenizer(self) -> None:
        """Check that the tokeniser's files exist.

        Raises:
            UserError: names what is missing.
        """
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
        from models.nmt.families.subwords import load_sentencepiece

        assert self._sentencepiece is not None
        model = load_sentencepiece(self._sentencepiece)
        found: list[str] = model.id_to_piece(list(range(model.get_piece_size())))
        return found

    def fairseq_pieces(self, languages: list[str]) -> list[str]:
        """The tokens by id of a model that fairseq trained: its special tokens come first, then
        SentencePiece's pieces, languages, and `<mask>`.
        """
        return ["<s>", "<pad>", "</s>", "<unk>", *self.pieces()[3:], *languages, "<mask>"]

    # Weights

    def torch_model(self) -> TorchModel:
        """Load the weights in torch, in float32.

        Raises:
            UserError: they are missing or damaged, hold code, or do not fit config.json.
        """
        import torch
        import transformers

        from models.nmt.families.torch_model import TorchModel

        kind = getattr(transformers, self.architecture)
        config = self._transformers_config(kind.config_class)
        try:
            with _quiet():
                network, report = kind.from_pretrained(
                    str(self.path),
                    config=config,
                    dtype=torch.float32,
                    local_files_only=True,
                    trust_remote_code=False,
                    weights_only=True,
                    output_loading_info=True,
                )
        except pickle.UnpicklingError as error:
            raise UserError(
                f"{self.path}/pytorch_model.bin: refused, it holds code or objects, or is damaged"
            ) from error
        except Exception as error:  # the library's loader raises many types
            if isinstance(error.__cause__ or error.__context__, pickle.UnpicklingError):
                raise UserError(
                    f"{self.path}/pytorch_model.bin: refused, it holds code or objects, or is "
                    "damaged"
                ) from error
            raise UserError(f"{self.path}: the weights cannot be read ({_short(error)})") from error
        missing = sorted(report["missing_keys"])
        if missing or report.get("mismatched_keys"):
            raise UserError(
                f"{self.path}: the weights do not fit config.json "
                f"({missing[0] if missing else 'their sizes differ'})"
            )
        pad = self.config.get("pad_token_id")
        pad = pad if isinstance(pad, int) else self.tokens.index("<pad>")
        return TorchModel(network, self.tokens, self.layout, eos="</s>", pad=pad)

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
        try:
            with torch.no_grad():
                spec = self.make_spec(model.network)
            spec.config.bos_token = self.layout.decoder_start or "<s>"
            spec.config.eos_token = "</s>"
            spec.config.unk_token = "<unk>"
            spec.config.decoder_start_token = self.layout.decoder_start
            spec.register_source_vocabulary(self.tokens)
            spec.register_target_vocabulary(self.tokens)
            spec.validate()
            spec.optimize(quantization=None)
            spec.save(str(out))
        except (ValueError, NotImplementedError, AttributeError, KeyError) as error:
            raise UserError(
                f"{self.path}: CTranslate2 cannot convert it ({_short(error)}); "
                "choose engine transformers"
            ) from error
        self._compare(model, out)
        return self.positions, self.positions

    def make_spec(self, network: Any) -> Any:
        """The network as CTranslate2's converters describe it."""
        from ctranslate2.converters import transformers as converters

        return getattr(converters, self.loader)().get_model_spec(network)

    def _compare(self, model: TorchModel, out: Path) -> None:
        """Compare log probabilities of random sentences; conversions can go wrong silently."""
        import ctranslate2

        rng = random.Random(0)
        words = [token for token in self.tokens if token[0] not in "<>_" and len(token) > 1]
        words = words or self.tokens
        sentences = [rng.choices(words, k=length) for length in (3, 5, 8, 13, 21, 34)]
        sources, targets = sentences, sentences[::-1]
        expected = model.log_probs(sources, targets)
        prefix = list(self.layout.target_prefix)
        converted = ctranslate2.Translator(str(out), device="cpu", compute_type="float32")
        found = converted.score_batch(
            [self.layout.source(source) for source in sources],
            [prefix + target for target in targets],
            max_input_length=0,
        )
        worst = 0.0
        for result, truth in zip(found, expected, strict=True):
            probs = result.log_probs[-len(truth) :]
            worst = max(worst, abs(sum(probs) - sum(truth)) / len(truth))
        if not worst <= TOLERANCE:
            raise UserError(
                f"{self.path}: converted to CTranslate2 it gives other probabilities than in torch "
                f"(by {worst:.3g} per subword); choose engine transformers"
            )


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        UserError: the file cannot be read, or holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not JSON"
        raise UserError(f"{path}: cannot be read ({reason})") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: must be a JSON object")
    return value


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
