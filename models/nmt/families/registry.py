"""Which family a model folder is of."""

from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.nmt.families.converted import ConvertedModel
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.families.m2m100 import M2M100Model, NllbModel
from paraloom.models.nmt.families.marian import MarianModel
from paraloom.models.nmt.families.mbart import MBart25Model, MBart50Model
from paraloom.models.nmt.families.pretrained import PretrainedModel, read_object
from paraloom.models.nmt.families.t5 import T5Model

KNOWN = "Marian (OPUS-MT), M2M100, NLLB, mBART-25, mBART-50, T5 and MADLAD"


def open_model(path: Path | str, languages: Languages | None = None) -> NmtModel:
    """Open a model folder, of the family that its files tell."""
    path, languages = Path(path), languages or Languages()
    if not path.is_dir():
        raise UserError(f"{path}: no such model folder")
    if ConvertedModel.fits(path):
        return ConvertedModel(path, languages)
    if (path / "config.json").is_file() and not FairseqModel.fits(path):
        config = read_object(path / "config.json")
        return _pretrained(path, config)(path, config, languages)
    if not FairseqModel.fits(path) and any(path.iterdir()):
        raise UserError(
            f"{path}: no model of a family that is known here: it has no checkpoint.pt (fairseq), "
            "config.json (Hugging Face) or model.bin (CTranslate2)"
        )
    return FairseqModel(path)


def _pretrained(path: Path, config: dict[str, Any]) -> type[PretrainedModel]:
    """The family of a folder in Hugging Face's format."""
    kind, tokenizer = config.get("model_type"), _tokenizer_class(path, config)
    if kind == "marian":
        return MarianModel
    if kind == "m2m_100":
        m2m100 = tokenizer.startswith("M2M100") or (path / "vocab.json").is_file()
        return M2M100Model if m2m100 and not tokenizer.startswith("Nllb") else NllbModel
    if kind == "mbart":
        # mBART-25 starts with a language, mBART-50 with the end of sentence.
        starts = config.get("decoder_start_token_id") == config.get("eos_token_id", 2)
        return MBart50Model if tokenizer.startswith("MBart50") or starts else MBart25Model
    if kind == "t5":
        return T5Model
    raise UserError(
        f"{path}/config.json: model_type {kind!r} is of no family that is known here; known are "
        f"{KNOWN}"
    )


def _tokenizer_class(path: Path, config: dict[str, Any]) -> str:
    """The name of the tokeniser's class in Transformers; empty if no file says it."""
    settings = path / "tokenizer_config.json"
    name = read_object(settings).get("tokenizer_class") if settings.is_file() else None
    return str(name or config.get("tokenizer_class") or "")
