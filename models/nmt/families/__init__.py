"""Families of translation models: their files, languages and tokens."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import atomic_folder, digest, user_cache
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.nmt.families.converted import ConvertedModel
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.families.marian import MarianModel
from paraloom.models.nmt.families.pretrained import PretrainedModel

_UNPACKED = 20  # maximum bytes that a byte of a zip may become


class Form(NamedTuple):
    """A form of model folders: patterns of its files, `|` between alternatives. A folder that has
    the first has this form."""

    name: str
    open: Callable[[Path, Languages], NmtModel]
    files: tuple[str, ...]


FORMS = (
    Form("CTranslate2", ConvertedModel, ("model.bin", "shared_vocabulary.*|target_vocabulary.*",
         "sentencepiece*.model|*.spm|spiece.model|tokenizer.json|bpecodes")),
    Form("fairseq", lambda path, _: FairseqModel(path), ("*.pt", "dict.*.txt",
         "sentencepiece.model|sentencepiece.bpe.model|bpecodes|code")),
    Form("Marian", MarianModel, ("*.npz", "vocab.spm|*vocab.y*ml", "vocab.spm|source.spm")),
    Form("Hugging Face", PretrainedModel, ("config.json", "*.safetensors|pytorch_model*.bin",
         "source.spm|sentencepiece.bpe.model|spiece.model|tokenizer.json")),
)  # fmt: skip


def open_model(
    path: Path | str, languages: Languages | None = None, tokenizer: str | None = None
) -> NmtModel:
    """Open a model folder, a zip of one, or `DIR/model1.pt`; the files determine the family.

    `tokenizer` is `nmt.tokenizer`, for folders without one.
    """
    path, languages = Path(path), languages or Languages()
    if path.suffix == ".zip":
        path = unpacked(path)
    folder = path.parent if path.suffix == ".pt" else path
    if not folder.is_dir():
        raise UserError(f"{path}: no such model folder")
    form = next((form for form in FORMS if _has(folder, form.files[0])), None)
    if form is None and _has(folder, "*intgemm*"):
        raise UserError(f"{path}: quantised for another engine (intgemm); give the model.npz")
    if form is None:
        nearest = max(FORMS, key=lambda form: sum(_has(folder, file) for file in form.files))
        missing = [file for file in nearest.files if not _has(folder, file)]
        raise UserError(
            f"{path}: no known model family; the nearest is {nearest.name}'s, which has "
            f"{', '.join(nearest.files)}; here is no {', '.join(missing)}".replace("|", " or ")
        )
    model = form.open(path, languages)
    if isinstance(model, ConvertedModel):
        model.tokenizer = Path(tokenizer) if tokenizer else None
    elif tokenizer:
        raise UserError(f"nmt.tokenizer: {path} has its own; only a converted folder needs one")
    return model


def _has(folder: Path, patterns: str) -> bool:
    return any(True for pattern in patterns.split("|") for _ in folder.glob(pattern))


def unpacked(path: Path) -> Path:
    """Folder of a zip's files, without their folders; unpacked once, in the user's cache."""
    with in_one_line(f"{path}: not a zip of a model folder"):
        folder = user_cache() / "nmt" / f"unpacked-{digest(path)}"
        if folder.is_dir():
            return folder
        with zipfile.ZipFile(path) as archive, atomic_folder(folder) as new:
            members = [member for member in archive.infolist() if not member.is_dir()]
            size = sum(member.file_size for member in members)
            if size > _UNPACKED * path.stat().st_size:
                raise ValueError(f"it has {size:,} bytes")
            for member in members:
                with archive.open(member) as packed:
                    (new / Path(member.filename).name).write_bytes(packed.read())
    return folder
