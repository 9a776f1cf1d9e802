"""The folder of an encoder, damaged, or written by others by hand or by malice."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from paraloom.models.embeddings.encoders import ENCODERS, build_encoder, kinds
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError
from paraloom.papers.heads import open_head
from tests.small_encoder import encoder_of_texts

ENTRIES = {"words": list("abc"), "trigrams": ["abc", "bcd"], "sentence-trigrams": ["abc", "b c"]}


def saved(folder: Path, **options: Any) -> Path:
    """The folder of an encoder with random weights and a head."""
    chosen = EmbeddingOptions(**{"dim": 4, "model": "gran", **options})
    names = kinds(chosen.model)
    vocabularies = {kind: Vocabulary(ENTRIES[kind], kind=kind, tags=chosen.tags) for kind in names}
    vectors = {kind: torch.randn(len(v), chosen.dim) for kind, v in vocabularies.items()}
    encoder = build_encoder(chosen, vectors)
    given = {"name": "distribution", "lowest": 1.0, "highest": 5.0, "dim": encoder.dim, "units": 3}
    head = open_head(given)
    model = SentenceEncoder(encoder.eval(), vocabularies, chosen, head)
    folder.mkdir()
    model.write(folder, native=False)
    return folder


def refused(folder: Path, message: str = "") -> None:
    """Loading ends in an error that names the file, in its message or in its notes."""
    with pytest.raises((OSError, ValueError, LookupError, TypeError, RuntimeError, UserError)) as e:
        load_encoder(folder)
    text = "".join([*getattr(e.value, "__notes__", ()), str(e.value)])
    assert str(folder) in text and re.search(message, text)


def changed(*section: str, **values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Gives a configuration with other values, or with other ones in its section."""
    if section:
        (name,) = section
        return lambda config: {**config, name: {**config[name], **values}}
    return lambda config: {**config, **values}


HUGE = 10**9


@pytest.mark.parametrize(
    "change",
    [
        lambda config: None, changed(format=3), changed(vocabularies={"words": None}),
        changed("options", dim=HUGE), changed("options", dim=65_536, hidden=65_536, model="bilstm"),
        changed("options", model="../../evil"), changed("options", model="trigram-avg"),
        changed("options", model="word-avg+gran", mix="add", hidden=3), changed(outputs=-1),
        changed(sentence_transformers={"native": "yes"}), changed("head", name="evil"),
        changed("head", units=HUGE), changed("head", units="3"),
        changed("head", highest=float("nan")), changed("head", more=1),
    ],
)  # fmt: skip
def test_a_wrong_configuration_is_refused_before_memory_is_taken(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    path = saved(tmp_path / "model") / "config.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    refused(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", lambda b: b[:-40], "cannot be read"),
        ("config.json", lambda b: b[:-9], "not the configuration"),
        ("config.json", lambda b: b"[" * 100_000, "not the configuration"),
        ("config.json", None, "cannot be read"),
        ("words.txt", lambda b: b.replace(b"b\n", b"d\n"), "words.txt: changed since"),
    ],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, name: str, change: Callable[[bytes], bytes] | None, message: str
) -> None:
    path = saved(tmp_path / "model") / name
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    refused(tmp_path / "model", message)


@pytest.mark.parametrize("file", ["model.safetensors", "head.safetensors"])
def test_weights_of_another_shape_are_named(tmp_path: Path, file: str) -> None:
    path = saved(tmp_path / "model") / file
    state = load_file(path)
    name = next(iter(state))
    save_file({**state, name: torch.zeros(1, 2, 3)}, path)
    refused(tmp_path / "model", rf"{file}(.|\n)*size mismatch for {name}")


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_is_saved_and_loaded(tmp_path: Path, name: str) -> None:
    first = load_encoder(saved(tmp_path / "first", model=name))
    first.save(tmp_path / "second")
    vectors = load_encoder(tmp_path / "second").embed(["a b", "c", ""])
    assert (vectors == first.embed(["a b", "c", ""])).all() and vectors[0].any()


@pytest.mark.parametrize("name", ["lstm-avg", "bilstm-avg", "gru"])
def test_an_encoder_that_version_0_2_saved(tmp_path: Path, name: str) -> None:
    """LSTMs were modules of sentence-transformers, and GRUs named ours without `paraloom.`."""
    folder = saved(tmp_path / "model", model=name)
    before = load_encoder(folder).embed(["a b", "c"])
    config = json.loads((folder / "config.json").read_text())
    options = {**config["options"], "mega_batch_growth": None, "l2": 0.0}
    native = name != "gru"
    former = {"format": 1, "options": options, "sentence_transformers": {"native": native}}
    (folder / "config.json").write_text(json.dumps(config | former))
    if native:
        state = load_file(folder / "model.safetensors")
        matrix = {"emb_layer.weight": state.pop("input.table.weight")}
        (folder / "1_LSTM").mkdir()
        save_file(matrix, folder / "model.safetensors")
        lstm = {}
        for key, tensor in state.items():
            number, gate = re.fullmatch(r"directions\.(.)\.weights\.(.*)", key).groups()  # type: ignore[union-attr]
            lstm[f"encoder.{gate}{'_reverse' if number == '1' else ''}"] = tensor
        save_file(lstm, folder / "1_LSTM" / "model.safetensors")
    else:
        modules = json.loads((folder / "modules.json").read_text())
        modules[0]["type"] = modules[0]["type"].removeprefix("paraloom.")
        (folder / "modules.json").write_text(json.dumps(modules))
    assert (load_encoder(folder).embed(["a b", "c"]) == before).all()


def test_an_encoder_remembers_its_language(tmp_path: Path) -> None:
    texts = ["L'homme qu'il voit court.", "C'est l'été aujourd'hui."]
    model = encoder_of_texts(texts, language="fr")
    model.save(tmp_path / "fr")
    loaded = load_encoder(tmp_path / "fr")
    assert loaded.language == model.language == "fr"
    assert (loaded.embed(texts) == model.embed(texts)).all()


def test_a_text_is_no_list_of_texts(tmp_path: Path) -> None:
    encoder = load_encoder(saved(tmp_path / "model"))
    with pytest.raises(UserError, match="one text is given where a list"):
        encoder.embed("a b")
    with pytest.raises(UserError, match="1 sentences are compared with 2 sentences"):
        encoder.similarity(["a"], ["a", "b"])


@pytest.mark.parametrize(
    "change, said",
    [({"model": "grown"}, "no encoder is named 'grown'"), ({"cell": "spiral"}, "cell: ")],
)
def test_an_encoder_of_another_system_is_refused_in_one_line(
    tmp_path: Path, change: dict[str, str], said: str
) -> None:
    folder = saved(tmp_path / "model", model="lstm")
    config = json.loads((folder / "config.json").read_text())
    config["options"] |= change
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=f"config.json: .*{said}"):
        load_encoder(folder)
