"""fairseq: a checkpoint, two dictionaries and one SentencePiece model for both languages."""

import argparse
import tempfile
from pathlib import Path

from paraloom.models.nmt.convert import conversion_errors
from paraloom.models.nmt.families.base import NmtModel
from paraloom.models.nmt.families.subwords import SentencePieces
from paraloom.models.nmt.model_folder import CHECKPOINT, SENTENCEPIECE, ModelFolder


class FairseqModel(NmtModel):
    """A fairseq model. Its checkpoint names the languages, and the dictionaries have no tags."""

    family = "fairseq"
    shortest = 1  # as fairseq's own search has it

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = ModelFolder(path)

    @staticmethod
    def fits(path: Path) -> bool:
        """Whether a folder is of this family, or was meant to be."""
        return (path / CHECKPOINT).is_file() or any(path.glob("dict.*.txt"))

    @property
    def digest(self) -> str:
        """See `NmtModel`."""
        return self.folder.digest

    def subwords(self) -> SentencePieces:
        """See `NmtModel`."""
        return SentencePieces(self.path / SENTENCEPIECE)

    def convert(self, out: Path) -> tuple[int, int]:
        """See `NmtModel`."""
        import torch
        from ctranslate2.converters import FairseqConverter
        from torch.serialization import safe_globals

        from paraloom.models.nmt.checkpoint import build_model, read_checkpoint

        checkpoint = read_checkpoint(self.folder)
        settings = checkpoint.settings
        build_model(self.folder, checkpoint)  # raises clear errors; the converter does not
        with tempfile.TemporaryDirectory() as scratch:
            clean = Path(scratch) / "checkpoint.pt"
            torch.save({"args": settings, "model": checkpoint.weights}, clean)
            converter = FairseqConverter(
                str(clean),
                str(self.path),
                source_lang=settings.source_lang,
                target_lang=settings.target_lang,
            )
            errors = conversion_errors(self.folder.checkpoint, self.family)
            with errors, safe_globals([argparse.Namespace]):
                converter.convert(str(out), force=True)
        return settings.max_source_positions, settings.max_target_positions
