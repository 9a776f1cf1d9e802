"""Weights, tokeniser and modules of an encoder in a folder, as sentence-transformers reads them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, processors
from torch import Tensor

from paraloom.models.embeddings.export.layout import Layout
from paraloom.models.embeddings.export.tokenizer_trigrams import trigrams_tokenizer
from paraloom.models.embeddings.export.tokenizer_words import words_tokenizer
from paraloom.models.embeddings.vocabulary import BEGIN, END, UNKNOWN, Vocabulary, tag_edges
from paraloom.models.errors import UserError


def tokenizer_of(vocabulary: Vocabulary) -> Tokenizer:
    """A tokeniser with the ids of a vocabulary.

    Raises:
        InexpressibleError: the package `tokenizers` cannot express its rules.
    """
    entries = {word: number for number, word in enumerate(vocabulary.words)}
    if vocabulary.kind == "trigrams":
        own = dict(list(entries.items())[vocabulary.specials :])
        return trigrams_tokenizer(own, UNKNOWN, vocabulary.language)
    tokenizer = words_tokenizer(entries, UNKNOWN, vocabulary.language)
    if vocabulary.tags:
        start, end = tag_edges(vocabulary.tags)
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join([BEGIN] * start + ["$A"] + [END] * end),
            special_tokens=[(BEGIN, entries[BEGIN]), (END, entries[END])],
        )
    return tokenizer


def write(
    folder: Path, layout: Layout, weights: Mapping[str, Tensor], tokenizer: Tokenizer | None
) -> None:
    """Write the files of a layout into an existing folder; `weights` have our names."""
    for name in layout.modules:
        (folder / name).mkdir(exist_ok=True)
    for file, names in layout.weights.items():
        save_file({theirs: weights[ours] for theirs, ours in names.items()}, folder / file)
    if tokenizer is not None:
        tokenizer.save(str(folder / "tokenizer.json"))
    for file, settings in layout.settings.items():
        _write_json(folder / file, settings)
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (path, kind) in enumerate(layout.modules.items())
    ]
    _write_json(folder / "modules.json", modules)
    config = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine", "prompts": {}}
    _write_json(folder / "config_sentence_transformers.json", config)


def read_weights(folder: Path, layout: Layout) -> dict[str, Tensor]:
    """The weights in the files of a layout, by our names; unknown names stay as they are."""
    found = {}
    for file, names in layout.weights.items():
        for name, tensor in read_tensors(folder / file).items():
            found[names.get(name, name)] = tensor
    return found


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The content of a file of weights."""
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot be read as safetensors ({error})") from error


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")
