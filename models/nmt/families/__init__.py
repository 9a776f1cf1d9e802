"""Families of translation models: their files, languages and tokens."""

import zipfile
from pathlib import Path

from paraloom.models.errors import UserError, in_one_line
from paraloom.models.files import atomic_folder, digest, user_cache
from paraloom.models.memory import check_zip
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.nmt.families.converted import ConvertedModel
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.families.marian import MarianModel
from paraloom.models.nmt.families.pretrained import PretrainedModel

FORMS: tuple[type[NmtModel], ...] = (ConvertedModel, FairseqModel, MarianModel, PretrainedModel)
"""Classes of model folders. The first class that fits a folder is used."""


def open_model(
    path: Path | str, languages: Languages | None = None, tokenizer: str | None = None
) -> NmtModel:
    """Open a model folder, a zip file of a model folder, or a checkpoint such as `DIR/model1.pt`.

    `tokenizer` is the value of `nmt.tokenizer`, for folders without a tokeniser.
    """
    path, languages = Path(path), languages or Languages()
    if path.suffix == ".zip":
        path = unpacked(path)
    folder = path.parent if path.suffix == ".pt" else path
    form = next((form for form in FORMS if _has(folder, form.files[0])), None)
    if form is None and _has(folder, ("*intgemm*",)):
        raise UserError(
            f"{path}: quantised for another engine (intgemm); use the original model.npz"
        )
    if not folder.is_dir() or not any(_has(folder, file) for form in FORMS for file in form.files):
        raise UserError(f"{path}: not a model folder; name the folder that contains the model")
    if form is None:
        nearest = max(FORMS, key=lambda form: sum(_has(folder, file) for file in form.files))
        lacks = ", ".join(" or ".join(file) for file in nearest.files if not _has(folder, file))
        raise UserError(f"{path}: unknown kind of model; {nearest.family} models also need {lacks}")
    model = form(path, languages)
    if isinstance(model, ConvertedModel):
        model.tokenizer = Path(tokenizer) if tokenizer else None
    elif tokenizer:
        raise UserError(f"nmt.tokenizer: {path} has its own tokeniser; remove this key")
    return model


def _has(folder: Path, patterns: tuple[str, ...]) -> bool:
    return any(True for pattern in patterns for _ in folder.glob(pattern))


def unpacked(path: Path) -> Path:
    """Unpack the files of a zip into one folder in the user's cache. Return the folder."""
    with in_one_line(f"{path}: not a zip of a model folder"):
        folder = user_cache() / "nmt" / f"unpacked-{digest(path)}"
        if not folder.is_dir():
            with zipfile.ZipFile(path) as archive, atomic_folder(folder) as new:
                check_zip(path, archive)
                for member in archive.infolist():
                    if not member.is_dir():
                        (new / Path(member.filename).name).write_bytes(archive.read(member))
    return folder
