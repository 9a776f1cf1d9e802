"""Models of fairseq: checkpoints, two dictionaries, and a SentencePiece model or BPE codes.

fairseq's own loader unpickles arbitrary objects. This module reads settings and weights with
torch's safe loading, and builds the model from them.
"""

from __future__ import annotations

import argparse
import io
import logging
import pickletools
import tempfile
import warnings
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from paraloom.models.errors import UserError, in_one_line, one_line
from paraloom.models.memory import bounded_by_files
from paraloom.models.nmt.families.base import POSITIONS, Languages, NmtModel

if TYPE_CHECKING:
    import torch
    from fairseq.data import Dictionary

CHECKPOINT = "checkpoint.pt"
SENTENCEPIECE = "sentencepiece.model"
# Checkpoints are averaged only if |m|² / (mean of |w|²) exceeds this value. Here w is the weight
# vector of a checkpoint, and m is the mean of all w. The ratio is about 0.5 for separate trainings.
_ALIKE = 0.8
_SETTINGS = 1 << 24  # bytes of a checkpoint that are searched for its languages


class Loaded(NamedTuple):
    """A model in torch, as float32 and in evaluation mode. `settings` contains `source_lang` and
    `target_lang`, and the maximum lengths `max_source_positions` and `max_target_positions`."""

    network: torch.nn.Module
    source: Dictionary
    target: Dictionary
    settings: argparse.Namespace
    weights: dict[str, torch.Tensor]


class FairseqModel(NmtModel):
    """A folder with checkpoints (`*.pt`), dictionaries (`dict.<language>.txt`) and a tokeniser.

    If a folder has several checkpoints, the path `DIR/model1.pt` selects one checkpoint, and
    `DIR/model1.pt:model2.pt` selects the average of two checkpoints.
    """

    family = "fairseq"
    files = (
        ("*.pt",),
        ("dict.*.txt",),
        (SENTENCEPIECE, "sentencepiece.bpe.model", "bpecodes", "code"),
    )
    shortest = 1  # as in fairseq's own search

    def __init__(self, path: Path, languages: Languages | None = None) -> None:
        self.path = path if path.is_dir() else path.parent
        names = path.name.split(":")
        if path.is_dir():
            found = sorted(file.name for file in path.glob("*.pt"))
            names = [name for name in (CHECKPOINT, "model.pt") if name in found][:1] or found
            if len(names) > 1:
                raise UserError(
                    f"{path}: has {len(names)} checkpoints; name one ({path / names[0]}), or the "
                    f"average of several from one training ({path / ':'.join(names[:2])})"
                )
        self.checkpoints = [self.path / name for name in names]
        self._dictionaries = {file.name: file for file in sorted(self.path.glob("dict.*.txt"))}
        self.languages = _languages(self.checkpoints[0])
        for language in filter(None, self.languages):
            self._dictionary_file(language)
        self.read = [*self.checkpoints, *self._dictionaries.values()]

    def _state(self) -> dict[str, Any]:
        first, *others = states = [read_state(path) for path in self.checkpoints]
        if not others:
            return first
        with in_one_line(f"{self.path}: the checkpoints do not fit each other"):
            models = [state["model"] for state in states]
            mean = mean_weights(models)
            lengths = [
                sum(float(weight.double().square().sum()) for weight in of.values())
                for of in (mean, *models)
            ]
        if not lengths[0] * len(models) > _ALIKE * sum(lengths[1:]):
            raise UserError(
                f"{self.path}: the checkpoints are from several trainings, so they cannot be "
                f"averaged; name one ({self.checkpoints[0]})"
            )
        return {**first, "model": mean}

    def load(self) -> Loaded:
        """Load the model in torch."""
        fairseq = import_fairseq()
        path, state = self.checkpoints[0], self._state()
        # fairseq does not check its settings. With 0 heads, for example, fairseq divides by 0.
        with in_one_line(f"{path}: not a translation transformer with these dictionaries"):
            settings = _settings(state)
            source = self._dictionary(settings.source_lang)
            target = self._dictionary(settings.target_lang)
            task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
            with bounded_by_files(self.path):
                network = fairseq.models.transformer.TransformerModel.build_model(settings, task)
            network.load_state_dict(state["model"])
        return Loaded(network.float().eval(), source, target, settings, state["model"])

    def _dictionary_file(self, language: object) -> Path:
        name = f"dict.{one_line(language)[:80]}.txt"
        if name not in self._dictionaries:
            raise UserError(f"{self.path / name}: missing, but the checkpoint names this language")
        return self._dictionaries[name]

    def _dictionary(self, language: object) -> Dictionary:
        path = self._dictionary_file(language)
        with in_one_line(f"{path}: not a fairseq dictionary, with a word and a count per line"):
            return import_fairseq().data.Dictionary.load(str(path))

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`."""
        import torch
        from ctranslate2.converters import FairseqConverter
        from torch.serialization import safe_globals

        loaded = self.load()  # check the model, because the converter does not
        settings = loaded.settings
        with tempfile.TemporaryDirectory() as scratch:
            clean = Path(scratch) / CHECKPOINT
            torch.save({"args": settings, "model": loaded.weights}, clean)
            converter = FairseqConverter(
                str(clean),
                str(self.path),
                source_lang=settings.source_lang,
                target_lang=settings.target_lang,
            )
            with safe_globals([argparse.Namespace]):
                converter.convert(str(out), force=True)
        return settings.max_source_positions, settings.max_target_positions


def _languages(checkpoint: Path) -> tuple[str, str]:
    """Find a checkpoint's languages in its pickled settings, without unpickling the settings."""
    values: list[Any] = []
    with suppress(Exception), checkpoint.open("rb") as file:  # `read_state` reports faults
        stream: Any = file
        if zipfile.is_zipfile(checkpoint):
            parts = zipfile.ZipFile(file)
            name = next(name for name in parts.namelist() if name.endswith("/data.pkl"))
            stream = parts.open(name)
        settings = io.BytesIO(stream.read(_SETTINGS))
        for _ in range(4):  # in an older format, three other pickles come first
            operations = pickletools.genops(settings)
            values += [value for kind, value, _ in operations if not kind.name.endswith("PUT")]
    # Each value now follows its key.
    found = {key: value for key, value in pairwise(values) if type(key) is type(value) is str}
    return found.get("source_lang", ""), found.get("target_lang", "")


def mean_weights(models: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return the mean of the checkpoints' weights, as float32."""
    import torch

    return {key: torch.stack([of[key].float() for of in models]).mean(0) for key in models[0]}


def read_state(path: Path) -> dict[str, Any]:
    """Read a whole checkpoint with torch's safe loading."""
    import torch
    from torch.serialization import safe_globals

    refused = f"{path}: refused: it is damaged, or contains code or objects"
    meters = [f"fairseq.meters.{name}Meter" for name in ("Average", "Stopwatch", "Time")]
    known = ["argparse.Namespace", *meters]  # checkpoints from before 2020 contain meters
    with in_one_line(refused), safe_globals([(argparse.Namespace, name) for name in known]):
        state = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise UserError(f"{path}: not a fairseq checkpoint (it has no `model`)")
    return state


def _settings(state: dict[str, Any]) -> argparse.Namespace:
    task, given = {}, state.get("args")
    if given is None:  # a hydra checkpoint, whose model name is the architecture
        task, given = _values(state["cfg"].get("task", {})), _values(state["cfg"]["model"])
        given = {"arch": given.get("_name"), **given}
    values = {**task, **_values(given)}
    if import_fairseq().models.ARCH_MODEL_NAME_REGISTRY.get(values["arch"]) != "transformer":
        raise ValueError(f"its architecture is {values['arch']}")
    # Remove paths of the machine that trained the model.
    values |= {"encoder_embed_path": None, "decoder_embed_path": None, "task": "translation"}
    for key in ("max_source_positions", "max_target_positions"):
        values[key] = int(values.get(key) or POSITIONS)
    return argparse.Namespace(**values)


def _values(settings: Any) -> dict[str, Any]:
    return {**(vars(settings) if isinstance(settings, argparse.Namespace) else settings)}


def import_fairseq() -> ModuleType:
    """Import fairseq, and undo its changes to the program's logging."""
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
