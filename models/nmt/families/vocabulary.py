"""Vocabularies of models in Hugging Face's format, from the files of their tokenisers."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.subwords import TokenizerJson, open_subwords
from paraloom.models.nmt.families.table import M2M100, MARIAN, T5, Family
from paraloom.models.structured import read_json


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    return read_json(path, dict[str, Any], "a JSON object")


def read_tokens(folder: Path, family: Family, tokenizer: Mapping[str, Any], size: int) -> list[str]:
    """The encoder's tokens by id; may be fewer than its embeddings.

    Args:
        tokenizer: the content of tokenizer_config.json.
        size: the number of embeddings.
    """
    if family is MARIAN:
        return read_vocabulary(folder / "vocab.json")
    if (folder / "tokenizer.json").is_file():
        return TokenizerJson(folder / "tokenizer.json").vocabulary()
    if family is M2M100:  # vocab.json has neither languages nor the tokens after them
        codes = _codes(family)
        name = str(tokenizer.get("language_codes") or "m2m100")
        if name not in codes:
            settings = folder / "tokenizer_config.json"
            raise UserError(f"{settings}: language_codes {name!r} is unknown")
        return [*read_vocabulary(folder / "vocab.json"), *(f"__{code}__" for code in codes[name])]
    pieces = open_subwords(folder, family.tokenizers).vocabulary()
    if family is T5:
        extra = any(token.startswith("<extra_id_") for token in pieces)
        missing = 0 if extra else max(min(size - len(pieces), 100), 0)
        return [*pieces, *(f"<extra_id_{number}>" for number in reversed(range(missing)))]
    # fairseq trained it: its special tokens come first.
    return ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], *_codes(family), "<mask>"]


def read_vocabulary(path: Path) -> list[str]:
    """The tokens by id of a vocab.json."""
    by_token = read_object(path)
    if set(map(str, by_token.values())) != set(map(str, range(len(by_token)))):
        raise UserError(f"{path}: must give each token an id of its own, from 0 on")
    return sorted(by_token, key=lambda token: int(by_token[token]))


def _codes(family: Family) -> Any:
    return import_module(f"transformers.models.{family.codes}").FAIRSEQ_LANGUAGE_CODES
