"""Bad folders of models from the Hub: each ends in one line, and no code of theirs is run."""

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from paraloom.models.errors import UserError
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.pretrained import PretrainedModel
from tests.hub_folders import write_json

from .conftest import CZECH, Malicious, translator

SOURCES = ["Jan má rád sýr.", "Máš nová trička?"]
Copy = Callable[[str], Path]


def load(folder: Path) -> None:
    """Read all that a folder has."""
    model = open_model(folder, CZECH)
    assert isinstance(model, PretrainedModel)
    model.subwords()
    model.network()


def refused(folder: Path, message: str, read: Callable[[Path], object] = load) -> None:
    with pytest.raises(UserError, match=message) as error:
        read(folder)
    assert "\n" not in str(error.value)


def weights_of(folder: Path) -> dict[str, Any]:
    return {**load_file(folder / "model.safetensors")}


def configure(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, **changes})


@pytest.mark.parametrize("form", ["zip", "tar", "pickle", "shards"])
def test_weights_that_hold_code_are_refused(
    copy: Copy, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # must not weaken us
    folder, trace = copy("marian"), tmp_path / "trace"
    weights = {**weights_of(folder), "extra": Malicious(trace)}
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    if form == "pickle":
        path.write_bytes(pickle.dumps(weights["extra"]))
    elif form == "tar":
        content = pickle.dumps(weights["extra"])
        with tarfile.open(path, "w") as archive:
            for name in ("sys_info", "pickle", "storages", "tensors"):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    else:
        torch.save(weights, path)
    if form == "shards":
        shard = path.rename(folder / "pytorch_model-00001-of-00001.bin").name
        names = dict.fromkeys(weights, shard)
        write_json(folder / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": names})
    refused(folder, "the weights cannot be read: they are damaged, or hold code")
    refused(folder, "the weights cannot be read: they are damaged, or hold code", translator)
    assert not trace.exists()


def test_pickled_weights_and_weights_in_shards_load_too(copy: Copy) -> None:
    folder = copy("marian")
    before, _ = translator(folder).translate(SOURCES)
    weights = weights_of(folder)
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert translator(folder).translate(SOURCES)[0].equals(before)
    (folder / "pytorch_model.bin").unlink()
    shards = {name: f"model-{1 + at % 2}.safetensors" for at, name in enumerate(weights)}
    for shard in set(shards.values()):
        part = {name: weights[name] for name in weights if shards[name] == shard}
        save_file(part, folder / shard, metadata={"format": "pt"})
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": shards})
    assert translator(folder).translate(SOURCES)[0].equals(before)
    (folder / shard).unlink()
    refused(folder, "the weights cannot be read")


def test_weights_outside_the_folder_are_refused(copy: Copy) -> None:
    """They are not in the digest of the model."""
    folder = copy("marian")
    names = dict.fromkeys(weights_of(folder), "../model.safetensors")
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": names})
    refused(folder, r"index\.json: names a file outside its folder")


def test_weights_that_are_not_numbers_are_refused(copy: Copy) -> None:
    folder = copy("marian")
    weights = weights_of(folder)
    weights["model.encoder.layers.0.fc1.bias"][:] = torch.nan  # which no ReLU hides
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    refused(folder, r"gives other probabilities than in torch \(by nan per subword\)", translator)


def test_code_of_a_model_is_never_run(copy: Copy, tmp_path: Path) -> None:
    folder, trace = copy("marian"), tmp_path / "trace"
    (folder / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    own = {"AutoConfig": "evil.C", "AutoModelForSeq2SeqLM": "evil.M", "AutoTokenizer": ["evil.T"]}
    configure(folder, auto_map=own)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {**settings, "auto_map": own})
    load(folder)
    assert not trace.exists()
    configure(folder, _attn_implementation="owner/kernel")
    refused(folder, r"config\.json: .* code of its own \(owner/kernel\)")


@pytest.mark.parametrize(
    ("family", "file", "content", "message"),
    [
        ("marian", "config.json", '{"model_type": "bert"}', "'bert' is of no known family"),
        ("marian", "config.json", None, "no known model family"),
        ("marian", "source.spm", None, r"the tokeniser is missing .*source\.spm"),
        ("marian", "source.spm", "x", "source.spm: not a SentencePiece model"),
        ("marian", "vocab.json", '{"a": 0, "b": 0}', "each token an id of its own"),
        ("marian", "target.spm", None, r"target\.spm: is missing from the model folder"),
        ("marian", "model.safetensors", None, r"its weights are missing \(model\.safetensors\)"),
        ("nllb", "sentencepiece.bpe.model", None, r"missing .*sentencepiece\.bpe\.model or"),
        ("mbart50", "tokenizer.json", "{}", "not a tokenizer.json"),
    ],
)
def test_bad_files_are_named_in_one_line(
    copy: Copy, family: str, file: str, content: str | None, message: str
) -> None:
    folder = copy(family)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    refused(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 10**9}, "does not fit the tokeniser .* 1,000,000,000 embeddings for"),
        ({"vocab_size": None}, "does not fit the tokeniser"),
        ({"max_position_embeddings": 10**9}, "max_position_embeddings must be at most 16,384"),
        ({"encoder_layers": 10**9}, "encoder_layers must be at most 1,000"),
        ({"encoder_layers": 30, "encoder_ffn_dim": 1 << 16}, "settings describe .* files have"),
        ({"d_model": 64}, "the weights "),
        ({"decoder_start_token_id": 10**6}, "does not fit the tokeniser .*IndexError"),
    ],
)
def test_sizes_take_no_memory_on_the_word_of_a_file(
    copy: Copy, changes: dict[str, int], message: str
) -> None:
    folder = copy("marian")
    configure(folder, **changes)
    refused(folder, message)
