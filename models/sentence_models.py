"""Loading of sentence-transformers models without running code from their folders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paraloom.models import hub
from paraloom.models.errors import UserError, in_one_line, one_line
from paraloom.models.memory import bounded_by_files
from paraloom.models.structured import check_sizes, settings_in

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def find_model(
    name: str, option: str = "score.sentence_model", settings: str = "modules.json"
) -> Path:
    """Return the folder of a model, given its path or Hub name.

    Raise a UserError if the folder does not contain the file `settings`.
    """
    folder = hub.fetch(name, option, settings)
    if not (folder / settings).is_file():
        raise UserError(
            f"{option}: {name} is not a model of sentence-transformers: {settings} is missing"
        )
    return folder


find_cross_encoder = partial(find_model, option="score.cross_encoder_model", settings="config.json")


def load_sentence_model(folder: Path) -> SentenceTransformer:
    """Load a model that computes sentence vectors, on a GPU if there is one."""
    from sentence_transformers import SentenceTransformer

    model: SentenceTransformer = load(
        lambda: SentenceTransformer(str(folder), local_files_only=True), folder
    )
    return model


def load(build: Callable[[], Any], folder: Path) -> Any:
    """Check that a model's settings are harmless, and load the model with `build`."""
    from transformers.utils import logging

    _check_settings(folder)
    hide_progress: Any = logging.disable_progress_bar
    hide_progress()
    with in_one_line(f"{folder}: the model cannot be loaded"), bounded_by_files(folder):
        return build()


_TRUSTED = ("sentence_transformers.", "torch.nn.", "paraloom.models.embeddings.")
_NAMING = ("modules.json", "router_config.json", "config.json")  # files with class names
_CLASSES = ("type", "activation_function", "activation_fn")  # keys whose values are class names
# Upper limits of settings, by pattern of the key. Larger values would cost much time, or memory
# outside tensors, which `bounded_by_files` does not limit.
_LARGEST = {
    r".*(layer|block|depth|stage|expert|group|head)(s|_sizes)?": 1_000,
    r"num_labels": 1 << 16,
    r".*positions?(_embeddings)?": 1 << 20,
}
# Keys for arguments of Transformers' loaders. Only the arguments in `_HARMLESS` are allowed,
# because the argument `weights_only: false`, for example, would unpickle objects.
_FOR_LOADERS = re.compile(r"(model|tokenizer|processor|config)_(args|kwargs)")
_HARMLESS = {
    *("dtype", "torch_dtype", "attn_implementation", "add_pooling_layer", "padding_side"),
    *("truncation_side", "model_max_length", "do_lower_case", "use_fast"),
}


def _check_settings(folder: Path) -> None:
    """Raise a UserError if the settings name third-party code, huge sizes or unsafe arguments.

    sentence-transformers imports classes from Python files in the model's folder, even without
    `trust_remote_code`. Links to folders are errors, because settings there would not be checked.
    """
    for file in sorted(folder.rglob("*")):
        if file.is_dir() and file.is_symlink():
            raise UserError(f"{file}: a model must not contain a link to a folder; copy the folder")
        if file.name.endswith(".index.json"):
            hub.check_index(file)
        elif file.name == "modules.json" or re.fullmatch(r".*config.*\.json", file.name):
            with in_one_line(f"{file}: the model cannot be loaded"):
                values = json.loads(file.read_bytes())
            _check_values(file, values)


def _check_values(file: Path, values: Any) -> None:
    check_sizes(file, values, _LARGEST)
    hub.check_settings(file, values)
    for key, value in values.items() if isinstance(values, dict) else ():
        arguments = value if _FOR_LOADERS.fullmatch(key) and isinstance(value, dict) else {}
        if unknown := sorted(arguments.keys() - _HARMLESS):
            raise UserError(
                f"{file}: the model cannot be loaded: {key} must not set {one_line(unknown[0])}"
            )
    for key, value in settings_in(values) if file.name in _NAMING else ():
        names = [value] if key in _CLASSES and isinstance(value, str) else []
        if key == "types" and isinstance(value, dict):
            names = [str(name) for name in value.values()]
        for name in names:
            if "." in name and not name.startswith(_TRUSTED):
                raise hub.brings_code(file, name)
