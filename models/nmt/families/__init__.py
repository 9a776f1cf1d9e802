"""Families of translation models: their files, languages and tokens."""

from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.nmt.families.fairseq import CHECKPOINT, FairseqModel
from paraloom.models.nmt.families.pretrained import PretrainedModel


def open_model(path: Path | str, languages: Languages | None = None) -> NmtModel:
    """Open a model folder; its files determine the family."""
    path, languages = Path(path), languages or Languages()
    if not path.is_dir():
        raise UserError(f"{path}: no such model folder")
    if (path / "model.bin").is_file():
        raise UserError(f"{path}: converted for CTranslate2; give the original folder")
    if (path / CHECKPOINT).is_file():
        return FairseqModel(path)
    if (path / "config.json").is_file():
        return PretrainedModel(path, languages)
    raise UserError(
        f"{path}: no known model family: it has no checkpoint.pt (fairseq) or "
        "config.json (Hugging Face)"
    )
