"""Loading of fairseq checkpoints without running code from them.

fairseq's own loader unpickles any object. Here torch's safe loading reads settings and weights, the
settings are checked, and the model is built from both.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from paraloom.models.errors import UserError
from paraloom.models.memory import bounded_by_files
from paraloom.models.nmt.weights import check_finite

if TYPE_CHECKING:
    import torch
    from fairseq.data import Dictionary

    from paraloom.models.nmt.model_folder import ModelFolder

_POSITIONS = 1024  # fairseq's default


class Checkpoint(NamedTuple):
    """The parts of a checkpoint that decoding needs.

    The settings name the languages, `source_lang` and `target_lang`, and the longest source and
    translation, end of sentence included: `max_source_positions` and `max_target_positions`.
    """

    settings: argparse.Namespace
    weights: dict[str, torch.Tensor]


def read_state(path: Path) -> dict[str, Any]:
    """Read the whole content of a checkpoint with torch's safe loading."""
    import torch
    from torch.serialization import safe_globals

    try:
        with safe_globals([argparse.Namespace]):
            state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "Unsupported" in str(error) or "GLOBAL" in str(error):
            raise UserError(
                f"{path}: refused, it holds code or objects, not only weights and settings"
            ) from error
        raise UserError(f"{path}: not a fairseq checkpoint, or a damaged one") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from error
    except MemoryError:
        raise
    except Exception as error:  # the loader trusts the layout of the file
        raise UserError(f"{path}: not a fairseq checkpoint, or a damaged one") from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise UserError(f"{path}: not a fairseq checkpoint (it has no `model`)")
    return state


def read_checkpoint(folder: ModelFolder) -> Checkpoint:
    """Read and check a model folder's checkpoint."""
    path = folder.checkpoint
    state = read_state(path)
    settings = _settings(state)
    if settings is None:
        raise UserError(f"{path}: not a fairseq checkpoint (it has no settings of the model)")
    architectures = import_fairseq().models.ARCH_MODEL_NAME_REGISTRY
    architecture = getattr(settings, "arch", None)
    if not isinstance(architecture, str) or architectures.get(architecture) != "transformer":
        shown = " ".join(str(architecture).split())[:200]
        raise UserError(f"{path}: architecture {shown} is not a translation transformer")
    # These are paths on the machine that trained the model; the checkpoint has the weights.
    settings.encoder_embed_path = settings.decoder_embed_path = None
    settings.task = "translation"
    for key in ("max_source_positions", "max_target_positions"):
        positions = getattr(settings, key, None)
        if positions is None:
            positions = _POSITIONS
        if type(positions) is not int or positions < 1:  # True is an int, too
            raise UserError(f"{path}: {key} is not a number of subwords")
        setattr(settings, key, positions)
    for key in ("source_lang", "target_lang"):
        language = getattr(settings, key, None)
        if not isinstance(language, str):
            raise UserError(f"{path}: the checkpoint does not name its languages ({key})")
        folder.dictionary(language)
    return Checkpoint(settings, state["model"])


def _settings(state: dict[str, Any]) -> argparse.Namespace | None:
    """The settings of a checkpoint's model, with those of its task; None if it has none."""
    configuration = _named(state.get("cfg"))
    settings = state.get("args")
    if settings is None:
        settings = configuration.get("model")
    if isinstance(settings, argparse.Namespace):
        of_model = _named(vars(settings))
    elif isinstance(settings, dict):  # trained through hydra: the model's name is the architecture
        of_model = {"arch": settings.get("_name"), **_named(settings)}
    else:
        return None
    return argparse.Namespace(**{**_named(configuration.get("task")), **of_model})


def _named(values: object) -> dict[str, Any]:
    """The values of a dictionary whose keys are names; of anything else, none."""
    if not isinstance(values, dict):
        return {}
    return {key: value for key, value in values.items() if isinstance(key, str)}


def build_model(
    folder: ModelFolder, checkpoint: Checkpoint
) -> tuple[torch.nn.Module, Dictionary, Dictionary]:
    """Build the model (float32, evaluation mode), with its source and target dictionary."""
    fairseq = import_fairseq()
    settings = checkpoint.settings
    source, target = (
        _read_dictionary(folder.dictionary(language))
        for language in (settings.source_lang, settings.target_lang)
    )
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    try:
        with bounded_by_files(folder.path):
            model = fairseq.models.transformer.TransformerModel.build_model(settings, task)
        model.load_state_dict(checkpoint.weights)
    except UserError:
        raise
    except Exception as error:  # fairseq takes settings as they are: it may divide by 0 heads
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{folder.checkpoint}: does not fit its settings or the dictionaries ({reason})"
        ) from error
    check_finite(model, folder.checkpoint)
    return model.float().eval(), source, target


def _read_dictionary(path: Path) -> Dictionary:
    try:
        return import_fairseq().data.Dictionary.load(str(path))
    except Exception as error:  # fairseq raises this very type, among others
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"{path}: not a fairseq dictionary, which has a word and a count a line ({reason})"
        ) from error


def import_fairseq() -> ModuleType:
    """Import fairseq, and undo the changes that its import makes to the program's logging."""
    root = logging.getLogger()
    handlers, level, disabled = root.handlers[:], root.level, logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import fairseq
            import fairseq.data
            import fairseq.models.transformer
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.disable(disabled)
    module: ModuleType = fairseq
    return module
