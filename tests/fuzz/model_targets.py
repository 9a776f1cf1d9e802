"""What is fuzzed of models: one function for each kind of folder."""

import argparse
import io
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import torch

from paraloom.models.embeddings.applications.opened import open_model
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.nmt import families as nmt_families
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.translate import Translator
from paraloom.papers import systems  # noqa: F401  # makes their encoders and heads known
from paraloom.papers.heads import open_head
from tests.fuzz.harness import Case, allowed
from tests.fuzz.mutations import changed, damaged
from tests.models.scorers.small_transformers import write_sentence_model
from tests.sample import DATA, MODEL
from tests.small_encoder import encoder_of_texts


def _files(folder: Path) -> dict[str, bytes]:
    """The files of a folder by relative path."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _write(files: dict[str, bytes], folder: Path, random: Random) -> None:
    """Write files into a folder, one of them damaged; settings most often."""
    settings = [name for name in files if name.endswith("config.json")]
    name = random.choice([*settings, *files])
    content = files[name]
    if name.endswith(".json") and random.random() < 0.8:
        content = json.dumps(changed(json.loads(content), random)).encode()
    else:
        content = damaged(content, random)
    for file, data in {**files, name: content}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(data)


@cache
def _encoder(name: str) -> dict[str, bytes]:
    """The files of a small encoder."""
    made = encoder_of_texts(["a b c", "abc bcd"], name, dim=4)
    sizes = {"dim": made.dim, "units": 3}
    made.head = open_head({"name": "distribution", "lowest": 1.0, "highest": 5.0, **sizes})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made.write(folder, native=False)
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def encoder(random: Random, folder: Path) -> None:
    """An encoder's folder: settings, vocabularies, weights."""
    name = random.choice(("gran", "bilstm-max", "trigram-avg", "word-avg+lstm"))
    _write(_encoder(name), folder, random)
    found = allowed(lambda: load_encoder(folder))
    if found is not None:
        assert found.embed(["a b", "abc", ""]).shape == (3, found.dim)
        found.similarity(["a"], ["b"])


def translation_model() -> Path:
    """A fairseq model that is small enough to be built for every case."""
    if (real := DATA.parent / "nmt" / "multi30k-cs-en").is_dir():
        return real
    return MODEL


def checkpoint(random: Random, folder: Path) -> None:
    """The settings in the checkpoint of a fairseq model, or its bytes in either form of torch."""
    from paraloom.models.nmt.families.fairseq import read_state

    place = folder / "model"
    shutil.copytree(translation_model(), place, copy_function=os.symlink)
    path = place / "checkpoint.pt"
    state = read_state(path)
    path.unlink()
    settings = vars(state["args"] or state["cfg"]["model"])
    if random.random() < 0.5:
        small = {"args": argparse.Namespace(**settings), "model": {"w": torch.ones(2, 3)}}
        torch.save(small, path, _use_new_zipfile_serialization=random.random() < 0.5)
        path.write_bytes(damaged(path.read_bytes(), random))
    else:
        settings = changed(settings, random)
        whole = argparse.Namespace(**settings) if isinstance(settings, dict) else settings
        torch.save(state | {"args": whole}, path)
    _translate(place)


@cache
def _hub_model(family: str) -> dict[str, bytes]:
    """The files of a small translation model in Hugging Face's format, which is not trained."""
    from tests.hub_models import FAMILIES, save  # imports Transformers

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "model")
        folder.mkdir()
        torch.manual_seed(1)
        save(FAMILIES[family](folder).network, folder)
        return _files(folder)


def hub_model(random: Random, folder: Path) -> None:
    """A translation model's folder: settings, vocabularies, tokenisers, weights."""
    _write(
        _hub_model(random.choice(("marian", "m2m100", "mbart50", "madlad", "t5", "mt5"))),
        folder,
        random,
    )
    _translate(folder)


FORMS = ("spm", "opus", "converted", "bpe")
"""Other forms of translation models."""


@cache
def model_of(form: str) -> dict[str, bytes]:
    """The files of a small model in another form, with random weights."""
    from tests import fairseq_models, marian_models  # import Transformers

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "model")
        if form == "bpe":
            return _files(fairseq_models.make(folder))
        marian_models.make(folder, "opus" if form == "opus" else "spm")
        if form == "converted":
            converted = nmt_families.open_model(folder, Languages("cs", "en")).converted().path
            shutil.copytree(converted, folder / "converted")
            shutil.copy(folder / "vocab.spm", folder / "converted")
            folder = folder / "converted"
        return _files(folder)


def other_model(random: Random, folder: Path) -> None:
    """A folder of Marian, OPUS-MT, CTranslate2, or fairseq with BPE codes; or a zip of one."""
    form = random.choice(FORMS)
    place = folder / "model"
    _write(model_of(form), place, random)
    if form == "spm" and random.random() < 0.5:
        from tests.marian_models import SETTINGS, save

        with np.load(io.BytesIO(model_of(form)["model.npz"])) as file:
            weights = {name: file[name] for name in file.files if not name.startswith("special")}
        if random.random() < 0.3:
            weights[random.choice([*weights])] = np.zeros(random.choice(((1, 7), (0,), (40, 40))))
        save(place / "model.npz", weights, changed(SETTINGS, random))
    if form == "opus" and random.random() < 0.3:
        shutil.make_archive(str(folder / "opus"), "zip", place)
        path = folder / "opus.zip"
        path.write_bytes(damaged(path.read_bytes(), random))
        place = path
    _translate(place)


def _translate(folder: Path) -> None:
    options = NmtOptions.model_validate({"max_source_subwords": 20, "beam": 2})

    def translate() -> None:
        translator = Translator(folder, options, languages=Languages("cs", "en"), threads=1)
        rows, _ = translator.translate(["Jan má rád sýr.", ""])
        assert rows.num_rows == 2

    allowed(translate)


@cache
def _sentence_model() -> dict[str, bytes]:
    """The files of a small model of sentence-transformers."""
    with tempfile.TemporaryDirectory() as scratch:
        return _files(write_sentence_model(Path(scratch, "model")))


def sentence_model(random: Random, folder: Path) -> None:
    """A folder of sentence-transformers: modules, settings, tokeniser, weights."""
    _write(_sentence_model(), folder, random)
    texts = pa.array(["a dog", "", "the man runs"])
    allowed(lambda: open_model(str(folder)).evaluated.embed(texts))


MODEL_TARGETS: dict[str, tuple[Case, float]] = {
    "encoder": (encoder, 4),
    "checkpoint": (checkpoint, 1),
    "hub_model": (hub_model, 1),
    "other_model": (other_model, 1),
    "sentence_model": (sentence_model, 1),
}
"""As `tests.fuzz.targets.TARGETS`."""
