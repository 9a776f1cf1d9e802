"""Models in Marian's own format: vocabularies, and weights in NumPy's format."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from paraloom.models.errors import UserError, in_one_line, one_line
from paraloom.models.memory import check_zip
from paraloom.models.nmt.families.base import POSITIONS, Languages, NmtModel
from paraloom.models.nmt.families.subwords import SentencePieces, filled_up
from paraloom.models.nmt.families.table import MARIAN
from paraloom.models.structured import check_sizes, parse_yaml, read_yaml

_SETTINGS = "special:model.yml"  # name of the settings among the weights
_SUBWORDS = ("source.spm", "target.spm")
_NO_MODEL = re.compile(r".*\.(optimizer|orig|alphas)\.npz")
_TOKEN = re.compile(r"^(?:\? )?(.+?)\n?: +(\d+)$", re.MULTILINE)  # a line may end after a key
_LARGEST = {"(enc|dec)-depth": 1000, ".*(dim|heads).*": 1 << 20}
_OLDER: dict[str, Any] = {  # settings that older versions of Marian do not write
    "transformer-decoder-autoreg": "self-attention", "transformer-ffn-activation": "swish",
    "transformer-guided-alignment-layer": "last", "transformer-no-projection": False,
    "transformer-postprocess-emb": "d",
}  # fmt: skip
_ONLY: dict[str, Any] = {  # the only supported values; SSRU ("rnn") and factors are refused
    "type": "transformer", "transformer-decoder-autoreg": "self-attention",
    "transformer-attention-mask": "default", "transformer-disable-position-embeddings": False,
    "transformer-ffn-depth": 2, "transformer-rnn-projection": False, "transformer-tied-layers": [],
    "lemma-dim-emb": 0, "right-left": False, "ulr": False,
}  # fmt: skip


class MarianModel(NmtModel):
    """A folder with weights (`*.npz`) and a vocabulary. The vocabulary is `vocab.spm` or, in
    OPUS-MT, a YAML file beside `source.spm` and `target.spm`. `decoder.yml` or `model.npz.yml` may
    name other files. A multilingual model's vocabulary contains tags such as `>>deu<<`."""

    family = "Marian"
    files = (("*.npz",), ("vocab.spm", "*vocab.y*ml"), ("vocab.spm", "source.spm"))
    patience = 2  # gave the results closest to Marian's search, in which the beam shrinks

    def __init__(self, path: Path, languages: Languages) -> None:
        self.path = path
        given: dict[str, Any] = {}
        for file in [*path.glob("*.npz.yml"), *path.glob("*decoder.yml")]:
            read = read_yaml(file)
            given |= read if isinstance(read, dict) else {}
        self.suppresses_unknown = given.get("allow-unk") is not True
        self.weights = self._weights(_names(given, "models"))
        named = [path / name for name in _names(given, "vocabs")]
        self._vocabularies = [file for file in named if file.is_file()] or self._find_vocabularies()
        self.read = [self.weights, *self._vocabularies]
        layout = MARIAN.layout(read_vocabulary(self._vocabularies[0]), languages, "</s>")
        self.layout = replace(layout, source_suffix=(), barred=())

    def _weights(self, named: list[str]) -> Path:
        files = [f for f in sorted(self.path.glob("*.npz")) if not _NO_MODEL.fullmatch(f.name)]
        for names in (named, ["model.npz"], [file.name for file in files]):
            if len(chosen := [file for file in files if file.name in names]) == 1:
                return chosen[0]
        listed = ", ".join(file.name for file in files) or "none"
        raise UserError(f"{self.path}: name one model in decoder.yml; the folder has {listed}")

    def _find_vocabularies(self) -> list[Path]:
        for patterns in (["vocab.spm"], ["*vocab.y*ml"], ["*src.vocab", "*trg.vocab"], _SUBWORDS):
            found = [file for pattern in patterns for file in self.path.glob(pattern)]
            if len(found) == len(patterns):
                return found
        names = "vocab.spm; or vocab.yml with source.spm and target.spm"
        raise UserError(f"{self.path}: the vocabulary is missing ({names})")

    def subwords(self) -> SentencePieces:
        """See `NmtModel`."""
        own = self._vocabularies[0].suffix == ".spm"
        paths = self._vocabularies if own else [self.path / name for name in _SUBWORDS]
        return SentencePieces(paths[0], paths[-1])

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`."""
        from ctranslate2.converters import MarianConverter

        weights, settings = read_weights(self.weights)
        weights.setdefault("Wpos", _sinusoids(settings["dim-emb"]))
        positions = len(weights["Wpos"])
        with tempfile.TemporaryDirectory() as scratch:
            names = [f"{scratch}/encoder", f"{scratch}/decoder"]
            for name, side in zip(names, (0, -1), strict=True):
                own = f"{Path(name).name}_Wemb"
                embeddings = weights[own if own in weights else "Wemb"]
                tokens = filled_up(read_vocabulary(self._vocabularies[side]), len(embeddings))
                quoted = (token.replace("'", "''") for token in tokens)
                lines = (f"'{token}': {number}\n" for number, token in enumerate(quoted))
                Path(name).write_text("".join(lines), encoding="utf-8")
            # Append a byte, because the converter drops the last byte of the settings.
            weights[_SETTINGS] = np.frombuffer(yaml.safe_dump(settings).encode() + b"\0", np.int8)
            np.savez(f"{scratch}/model.npz", **weights)
            MarianConverter(f"{scratch}/model.npz", names).convert(str(out), force=True)
        self.try_out(out)
        return positions, positions


def read_weights(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a model's weights, as float32, and its settings. Unsupported models are errors."""
    refused = f"{path}: refused: it is damaged, or not a model of Marian"
    with in_one_line(refused), np.load(path, allow_pickle=False) as file:
        check_zip(path, file.zip)
        settings = file[_SETTINGS].tobytes().rstrip(b"\0").decode()
        weights = {name: file[name] for name in file.files if not name.startswith("special:")}
    found = {**_OLDER, **parse_yaml(settings, f"{path}, {_SETTINGS}")}
    check_sizes(path, found, _LARGEST)
    for key, value in _ONLY.items():
        if found.get(key, value) not in (value, str(value)):
            wrong = f"{key} is {one_line(found[key])}, but must be {value}"
            raise UserError(f"{path}: CTranslate2 cannot decode it: {wrong}")
    for name, weight in weights.items():
        if weight.dtype.kind != "f":
            wrong = f"quantised for another engine ({name} is {weight.dtype})"
            raise UserError(f"{path}: {wrong}; use the original model")
    return {name: weight.astype(np.float32) for name, weight in weights.items()}, found


def read_vocabulary(path: Path) -> list[str]:
    """Read subwords in id order from a SentencePiece model, a YAML file or a plain list."""
    if path.suffix == ".spm":
        return SentencePieces(path).vocabulary()
    if path.suffix == ".fsv":
        raise UserError(f"{path}: models with factors are not supported")
    with in_one_line(f"{path}: not a vocabulary of Marian"):
        text = path.read_text(encoding="utf-8")
        if path.suffix not in (".yml", ".yaml"):
            return text.removesuffix("\n").split("\n")
        by_id = {int(number): _unquoted(token) for token, number in _TOKEN.findall(text)}
        if "</s>" not in by_id.values():
            raise ValueError("it has no subword </s>")
        if set(by_id) != set(range(len(by_id))) or len(set(by_id.values())) != len(by_id):
            raise ValueError("each subword must have an id of its own, from 0 on")
        return [by_id[number] for number in range(len(by_id))]


def _unquoted(token: str) -> str:
    if "\\" in token or token[0] == "'":
        return str(yaml.load(token, yaml.BaseLoader))
    return token[1:-1] if token[0] == token[-1] == '"' and len(token) > 1 else token


def _names(given: dict[str, Any], key: str) -> list[str]:
    """Return the file names in a setting. Omit folders, which may be from another machine."""
    found = given.get(key)
    return [Path(str(name)).name for name in (found if isinstance(found, list) else [found])]


def _sinusoids(dim: int) -> Any:
    """Compute Marian's position embeddings. CTranslate2's default embeddings differ."""
    rates = np.exp(np.arange(dim // 2) * -np.log(10000) / (dim // 2 - 1))
    angles = np.arange(POSITIONS)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], 1).astype(np.float32)
