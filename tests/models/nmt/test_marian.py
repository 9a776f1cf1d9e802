"""Marian's own models: conversions keep probabilities; what cannot be decoded is refused."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from paraloom.models.errors import UserError
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.marian import MarianModel, read_vocabulary, read_weights
from tests.hub_models import mean_log_probs
from tests.marian_models import make, save
from tests.run_helpers import refuses
from tests.small_model import new_pairs

from .conftest import CZECH, translator


@pytest.fixture(scope="module", params=["spm", "opus"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder, and its network in torch with random weights."""
    folder = tmp_path_factory.mktemp("marian") / request.param
    return folder, make(folder, request.param)


def test_probabilities_are_those_of_the_network(made: Any) -> None:
    folder, network = made
    pairs = new_pairs(20)
    scores = translator(folder).score(*zip(*pairs, strict=True))
    truth = mean_log_probs(network, [network.example(*pair) for pair in pairs])
    np.testing.assert_allclose(scores, truth, atol=1e-4)


def test_opus_mt_in_a_zip_with_a_tag(made: Any, tmp_path: Path) -> None:
    folder, _ = made
    path = tmp_path / "opus.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.iterdir():
            archive.write(file, f"opus/{file.name}")
    model, unpacked = open_model(folder, CZECH), open_model(path, CZECH)
    assert unpacked.digest == model.digest
    if folder.name == "opus":
        assert unpacked.layout.source_prefix == (">>eng<<",)
        assert open_model(path, Languages("cs", "fr")).layout.source_prefix == (">>fra<<",)
        with pytest.raises(UserError, match=r"input.target_language: the model has no language"):
            open_model(path, Languages("cs", "pl"))
    else:
        assert unpacked.layout.source_prefix == ()


def changed(folder: Path, *without: str, **settings: object) -> None:
    """Write the model again with other settings, and without those that end so."""
    with np.load(path := folder / "model.npz") as file:
        weights = {name: file[name] for name in file.files}
    given = yaml.safe_load(weights.pop("special:model.yml").tobytes().rstrip(b"\0"))
    given |= {name.replace("_", "-"): of for name, of in settings.items()}
    save(path, weights, {key: of for key, of in given.items() if not key.endswith(without)})


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "model"
    make(folder)
    return folder


@pytest.fixture
def copy(small: Path, tmp_path: Path) -> Path:
    return shutil.copytree(small, tmp_path / "copy")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"transformer_decoder_autoreg": "rnn"}, "autoreg is rnn, but must be self-attention"),
        ({"type": "s2s"}, "type is s2s, but must be transformer"),
        ({"transformer_ffn_activation": "tanh"}, "tanh is not supported"),
        ({"transformer_heads": 0}, "CTranslate2 cannot convert it .*do not fit"),
        ({"enc_depth": 10**9}, "enc-depth must be at most 1,000"),
        ({"enc_depth": 3}, "CTranslate2 cannot convert it"),
    ],
)
def test_what_cannot_be_decoded(copy: Path, settings: dict[str, object], message: str) -> None:
    changed(copy, **settings)
    with refuses(message):
        open_model(copy, CZECH).converted()


def test_settings_of_older_versions_are_filled_in(copy: Path) -> None:
    before = translator(copy).score(["Máš nová trička?"], ["Hello."])
    changed(copy, "-autoreg", "-ffn-activation", "-layer", "-no-projection", "-postprocess-emb")
    assert translator(copy).score(["Máš nová trička?"], ["Hello."]) == before


def test_quantised_weights_and_bombs_are_refused(copy: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    save(path, {"Wemb": np.zeros((2, 2), np.int8)}, {"type": "transformer"})
    with pytest.raises(UserError, match=r"quantised for another engine \(Wemb is int8\)"):
        read_weights(path)
    np.savez_compressed(path, Wemb=np.zeros(1 << 20, np.float32))
    with pytest.raises(UserError, match=r"damaged, or not a model of Marian .*unpacks to 4,19"):
        read_weights(path)
    zipped = tmp_path / "model.zip"
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.npz", bytes(1 << 20))
    with pytest.raises(UserError, match=r"model\.zip: not a zip of a model .*unpacks to 1,048,576"):
        open_model(zipped)
    np.savez(path, Wemb=np.array([{}], dtype=object))
    with pytest.raises(UserError, match="damaged, or not a model of Marian"):
        read_weights(path)


def test_files_that_are_missing(copy: Path) -> None:
    (copy / "model.npz").rename(copy / "model.intgemm8.bin")
    with pytest.raises(UserError, match=r"another engine \(intgemm\); use the original"):
        open_model(copy)
    (copy / "model.intgemm8.bin").rename(copy / "model.npz")
    (copy / "vocab.spm").rename(copy / "vocab.fsv")
    with pytest.raises(UserError, match=r"vocabulary is missing \(vocab.spm; or vocab.yml with"):
        open_model(copy)
    (copy / "decoder.yml").write_text("vocabs: [/there/vocab.fsv]\n")
    with pytest.raises(UserError, match=r"vocab\.fsv: models with factors"):
        open_model(copy)
    (copy / "decoder.yml").write_text("models: [a.npz, b.npz]\n")
    (copy / "model.npz").rename(copy / "a.npz")
    (copy / "b.npz").write_bytes(b"")
    with pytest.raises(UserError, match=r"in decoder.yml; the folder has a.npz, b.npz"):
        open_model(copy)


def test_a_vocabulary_in_yaml_as_marian_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "vocab.yml"
    lines = ['"</s>": 0', '"<unk>": 1', r'"\"": 2', "no: 3", '"a: 7": 4', "'''': 5",
             r'"\x85": 6', "? lllllllll", ": 7", r'"\\": 8', '": ": 9']  # fmt: skip
    path.write_text("\n".join([*lines, ""]), "utf-8")
    assert read_vocabulary(path) == [
        "</s>", "<unk>", '"', "no", "a: 7", "'", "\x85", "l" * 9, "\\", ": "
    ]  # fmt: skip
    for content in ('"</s>": 0\n"b": 2\n', '"</s>": 0\n"</s>": 1\n', '"a": 0\n', "[]", "\xff"):
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(UserError, match=r"vocab\.yml: not a vocabulary of Marian"):
            read_vocabulary(path)
    plain = tmp_path / "a.src.vocab"
    plain.write_text("</s>\n<unk>\n#\n", "utf-8")
    assert read_vocabulary(plain) == ["</s>", "<unk>", "#"]


def test_unknown_subwords_are_not_generated_unless_allowed(copy: Path) -> None:
    assert isinstance(model := open_model(copy), MarianModel) and model.suppresses_unknown
    (copy / "model.npz.decoder.yml").write_text("allow-unk: true\n")
    assert not open_model(copy).suppresses_unknown
