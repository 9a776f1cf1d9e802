"""config.json of an encoder's folder that others wrote, by hand or by malice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from paraloom.models.embeddings.encoders import ENCODERS, build_encoder, kinds
from paraloom.models.embeddings.heads import open_head
from paraloom.models.embeddings.model import SentenceEncoder, load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.vocabulary import Vocabulary
from paraloom.models.errors import UserError

ENTRIES = {"words": ["a", "b", "c"], "trigrams": ["abc", "bcd"]}


def saved(folder: Path, **options: Any) -> Path:
    """The folder of an encoder with random weights and a head."""
    chosen = EmbeddingOptions(**{"dim": 4, "model": "gran", **options})
    vocabularies = {
        kind: Vocabulary(ENTRIES[kind], kind=kind, tags=chosen.tags) for kind in kinds(chosen.model)
    }
    vectors = {kind: torch.randn(len(v), chosen.dim) for kind, v in vocabularies.items()}
    encoder = build_encoder(chosen, vectors)
    head = open_head(
        {"name": "distribution", "lowest": 1.0, "highest": 5.0, "dim": encoder.dim, "units": 3}
    )
    model = SentenceEncoder(encoder.eval(), vocabularies, chosen, head)
    folder.mkdir()
    model.write(folder, native=False)
    return folder


@pytest.mark.parametrize("name", [*ENCODERS, "word-avg+trigram-avg"])
def test_every_encoder_is_checked_without_memory(tmp_path: Path, name: str) -> None:
    folder = saved(tmp_path / "model", model=name)
    found = load_encoder(folder)
    assert all(tensor.device.type == "cpu" for tensor in found.encoder.state_dict().values())
    assert found.embed(["a b", "abc"]).shape[0] == 2


def test_an_encoder_of_version_0_2_opens_with_its_options(tmp_path: Path) -> None:
    """Its names of options, and keys that nothing reads any more."""
    path = saved(tmp_path / "model") / "config.json"
    config = json.loads(path.read_text())
    phrases = {"table": "t.gz", "drawn": 5, "share": 0.9, "held_out": 0.1, "margin": 1.0}
    options = {"task": "phrases", "phrases": phrases, "model": "gran", "dim": 4}
    config["options"] = {**options, "l2": 0.02, "l2_words": 1.0}
    config |= {"task_version": 2, "divided_by_length": True, "max_words": 30}
    path.write_text(json.dumps(config))
    found = load_encoder(tmp_path / "model").options
    assert (found.lambda_c, found.lambda_w, found.task) == (0.01, 0.5, "phrases")
    assert found.phrases is not None and found.phrases.split == "pairs"
    assert (found.phrases.samples, found.phrases.fraction) == (5, 0.9)


def changed(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda config: {**config, **values}


def options(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda config: {**config, "options": {**config["options"], **values}}


def of_head(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda config: {**config, "head": {**config["head"], **values}}


HUGE = 10**9


@pytest.mark.parametrize(
    "change",
    [
        lambda config: [],
        lambda config: None,
        lambda config: {},
        changed(format="1"),
        changed(format=None),
        changed(vocabularies=None),
        changed(vocabularies=[]),
        changed(vocabularies={"words": None}),
        changed(vocabularies={"words": HUGE}),
        changed(vocabularies={}),
        changed(options=None),
        changed(options=[]),
        options(dim=HUGE),
        options(dim="4"),
        options(dim=65_536, hidden=65_536, model="bilstm"),
        options(model="../../evil"),
        options(model=None),
        options(model="trigram-avg"),
        options(model="word-avg+gran", mix="add", hidden=3),
        options(learning_rate="NaN"),
        options(phrases=3),
        options(task="context"),
        changed(language=3),
        changed(outputs=-1),
        changed(outputs=HUGE),
        changed(sentence_transformers=None),
        lambda config: {key: config[key] for key in config if key != "sentence_transformers"},
        changed(sentence_transformers={"native": "yes"}),
        changed(sentence_transformers={"native": True}),
        changed(head=3),
        changed(head={}),
        of_head(name="evil"),
        of_head(name=None),
        of_head(units=HUGE),
        of_head(units=-1),
        of_head(units="3"),
        of_head(lowest="a"),
        of_head(highest=float("nan")),
        of_head(highest=1e18),
        of_head(more=1),
    ],
)
def test_a_wrong_configuration_is_one_line(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    path = saved(tmp_path / "model") / "config.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(UserError) as error:
        load_encoder(tmp_path / "model")
    assert str(error.value).startswith(str(tmp_path)) and "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\xff"])
def test_what_is_no_json_is_one_line(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path / "model") / "config.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="not the configuration of an encoder"):
        load_encoder(tmp_path / "model")


@pytest.mark.parametrize(
    ("entries", "kind", "message"),
    [
        (["a", "a", "b"], "words", "not a vocabulary .*occurs twice"),
        (["ab", "abcd", "abc"], "trigrams", "not a vocabulary .*three characters"),
        (["abc", "bcd", "cde"], "trigrams", "a vocabulary of trigrams"),
    ],
)
def test_a_forged_vocabulary_is_one_line(
    tmp_path: Path, entries: list[str], kind: str, message: str
) -> None:
    folder = saved(tmp_path / "model")
    forged = Vocabulary(ENTRIES["words"])
    forged.words, forged.kind = ["<unk>", *entries], kind  # type: ignore[assignment]
    forged.save(folder / "words.txt")
    with pytest.raises(UserError, match=message):
        load_encoder(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "head.safetensors"])
def test_weights_of_another_shape_are_named(tmp_path: Path, file: str) -> None:
    path = saved(tmp_path / "model") / file
    state = load_file(path)
    name = next(iter(state))
    save_file({**state, name: torch.zeros(1, 2, 3)}, path)
    with pytest.raises(UserError, match=rf"{file}: weight '{name}' is \(1, 2, 3\)"):
        load_encoder(tmp_path / "model")
