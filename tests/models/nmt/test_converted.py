"""Folders that somebody converted for CTranslate2: as the original, if the tokeniser is there."""

import json
import shutil
from pathlib import Path

import pytest

from paraloom.models.errors import UserError
from paraloom.models.nmt import Translator
from paraloom.models.nmt.convert import read_vocabulary
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.base import Languages
from tests.run_helpers import HubModel, refuses

from .conftest import CZECH, SHORT, translator

SOURCES = ["Jan má rád sýr.", "Máš nová trička?"]
TOKENIZERS = ("*.spm", "*.model", "tokenizer.json")


def converted(folder: Path, out: Path, *, tokenizer: bool = True) -> Path:
    """What CTranslate2's command would write."""
    shutil.copytree(open_model(folder, CZECH).converted().path, out)
    (out / "paraloom.json").unlink()
    for pattern in TOKENIZERS if tokenizer else ():
        for file in folder.glob(pattern):
            shutil.copy(file, out / file.name)
    return out


@pytest.mark.parametrize("family", ["marian", "m2m100", "nllb", "mbart25", "mbart50", "madlad"])
def test_it_translates_as_the_original(hub_model: HubModel, family: str, tmp_path: Path) -> None:
    folder = converted(original := hub_model(family), tmp_path / "converted")
    assert (model := open_model(folder, CZECH)).family == "CTranslate2, taken as given"
    assert model.layout.source(["x"]) == open_model(original, CZECH).layout.source(["x"])
    found, wanted = (translator(of).translate(SOURCES)[0] for of in (folder, original))
    assert found.equals(wanted)
    tokens = read_vocabulary(folder, "target")
    for file in folder.glob("*_vocabulary.json"):  # older versions wrote lines
        file.with_suffix(".txt").write_text(
            "".join(f"{of}\n" for of in json.loads(file.read_text()))
        )
        file.unlink()
    assert read_vocabulary(folder, "target") == tokens
    assert translator(folder).translate(SOURCES)[0].equals(wanted)
    if family in ("m2m100", "nllb"):
        with pytest.raises(UserError, match=r"input.source_language: the model has no language"):
            open_model(folder, Languages("cz", "en"))


def test_a_tokeniser_elsewhere(hub_model: HubModel, tmp_path: Path) -> None:
    original = hub_model("madlad")
    folder = converted(original, tmp_path / "converted", tokenizer=False)
    with pytest.raises(UserError, match=r"the tokeniser is missing .*spiece\.model or .*bpecodes"):
        translator(folder)
    wanted = translator(original).translate(SOURCES)[0]
    for place in (original, original / "spiece.model"):
        options = SHORT.replace(tokenizer=str(place))
        found = Translator(folder, options, languages=CZECH, threads=1)
        assert found.translate(SOURCES)[0].equals(wanted)
        with pytest.raises(UserError, match=r"nmt\.tokenizer: .* has its own"):
            Translator(original, options, languages=CZECH, threads=1)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("model.bin", b"\xff" * 4000, "cannot convert it .*do not fit"),
        ("model.bin", None, "cannot convert it .*do not fit"),
        ("shared_vocabulary.json", b"[1]", r"vocabulary\.json: not a vocabulary of CTranslate2"),
        ("shared_vocabulary.json", b'["a", "</s>", "<2en>"]', "cannot convert it .*do not fit"),
        ("config.json", b"[]", r"config\.json: not settings of CTranslate2"),
        ("config.json", b'{"eos_token": "<eos>"}', r"config\.json: eos_token must be </s>"),
    ],
)
def test_damaged_files(
    hub_model: HubModel, tmp_path: Path, file: str, content: bytes | None, message: str
) -> None:
    folder = converted(hub_model("madlad"), tmp_path / "converted")
    data = (folder / file).read_bytes()
    (folder / file).write_bytes(data[: len(data) // 2] if content is None else content)
    with refuses(message):
        open_model(folder, Languages(None, "en")).converted()
