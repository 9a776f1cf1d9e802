"""Bad folders of models: each ends in one line, and no code of theirs is run."""

import io
import json
import pickle
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from paraloom.models.errors import UserError
from paraloom.models.nmt import checkpoint
from paraloom.models.nmt.checkpoint import read_state
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.options import Engine
from paraloom.models.nmt.translate import Translator
from tests.hub_models import write_json

from .test_families import ENGINES, translator
from .test_model_folder import Malicious


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["zip", "legacy", "tar", "pickle", "shards"])
def test_weights_that_hold_code_are_refused(
    copy: Callable[[str], Path],
    tmp_path: Path,
    engine: Engine,
    form: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # must not weaken us
    folder, trace = copy("marian"), tmp_path / "trace"
    weights = {**_weights(folder), "extra": Malicious(trace)}
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
        torch.save(weights, path, _use_new_zipfile_serialization=form != "legacy")
    if form == "shards":
        names = dict.fromkeys(
            weights, path.rename(folder / "pytorch_model-00001-of-00001.bin").name
        )
        write_json(folder / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": names})
    with pytest.raises(UserError, match=r"pytorch_model\.bin: refused, it holds code") as error:
        translator(folder, engine)
    assert "\n" not in str(error.value)
    assert not trace.exists()


def test_pickled_weights_load_too(copy: Callable[[str], Path]) -> None:
    folder = copy("marian")
    sources = ["Jan má rád sýr.", "Máš nová trička?"]
    before, _ = translator(folder).translate(sources)
    torch.save(_weights(folder), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    after, _ = translator(folder).translate(sources)
    assert after.equals(before)


def test_weights_in_shards_load_too(copy: Callable[[str], Path]) -> None:
    folder = copy("marian")
    sources = ["Jan má rád sýr.", "Máš nová trička?"]
    before, _ = translator(folder).translate(sources)
    weights = load_file(folder / "model.safetensors")
    shards = {
        name: f"model-0000{1 + at % 2}-of-00002.safetensors" for at, name in enumerate(weights)
    }
    for shard in set(shards.values()):
        part = {name: weights[name] for name in weights if shards[name] == shard}
        save_file(part, folder / shard, metadata={"format": "pt"})
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": shards})
    (folder / "model.safetensors").unlink()
    after, _ = translator(folder).translate(sources)
    assert after.equals(before)
    (folder / shard).unlink()
    with pytest.raises(UserError, match="the weights cannot be read"):
        translator(folder)


@pytest.mark.parametrize("engine", ENGINES)
def test_weights_outside_the_folder_are_refused(
    copy: Callable[[str], Path], engine: Engine
) -> None:
    """They are not in the digest of the model."""
    folder = copy("marian")
    names = dict.fromkeys(_weights(folder), "../model.safetensors")
    shutil.move(folder / "model.safetensors", folder.parent)
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": names})
    with pytest.raises(UserError, match=r"index\.json: names a file outside its folder"):
        translator(folder, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_implementation_on_the_hub_is_refused(
    copy: Callable[[str], Path], engine: Engine
) -> None:
    folder = copy("marian")
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, "_attn_implementation": "owner/kernel"})
    with pytest.raises(UserError, match=r"config\.json: .* code of its own \(owner/kernel\)"):
        translator(folder, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["final_logits_bias", "model.encoder.layers.0.fc1.weight"])
def test_weights_that_are_not_numbers_are_refused(
    copy: Callable[[str], Path], engine: Engine, name: str
) -> None:
    folder = copy("marian")
    weights = load_file(folder / "model.safetensors")
    weights[name][0] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=f"the weights hold NaN \\({name}\\)"):
        translator(folder, engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_infinite_weights_are_refused(copy: Callable[[str], Path], engine: Engine) -> None:
    folder, name = copy("marian"), "model.encoder.layers.0.fc1.weight"
    weights = load_file(folder / "model.safetensors")
    weights[name][0, 0] = torch.inf
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=f"the weights hold infinity \\({name}\\)"):
        translator(folder, engine)


def test_a_converted_model_without_probabilities_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = read_state(model / "checkpoint.pt")
    state["model"]["decoder.layers.0.fc2.bias"][:] = torch.nan  # which no ReLU hides
    torch.save(state, model / "checkpoint.pt")
    monkeypatch.setattr(checkpoint, "check_finite", lambda *_: None)
    folder = tmp_path / "converted"
    FairseqModel(model).convert(folder)
    shutil.copy(model / "sentencepiece.model", folder)
    with pytest.raises(UserError, match="converted: the model gives a translation no probability"):
        Translator(folder, threads=1)


def test_code_of_a_model_is_never_run(copy: Callable[[str], Path], tmp_path: Path) -> None:
    folder, trace = copy("marian"), tmp_path / "trace"
    (folder / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    for name in ("config.json", "tokenizer_config.json"):
        settings = json.loads((folder / name).read_text())
        own = {
            "AutoConfig": "evil.C",
            "AutoModelForSeq2SeqLM": "evil.M",
            "AutoTokenizer": ["evil.T"],
        }
        write_json(folder / name, {**settings, "auto_map": own})
    for engine in ENGINES:
        translator(folder, engine).translate(["Jan má rád sýr."])
    assert not trace.exists()


def _weights(folder: Path) -> dict[str, object]:
    return {**load_file(folder / "model.safetensors")}


@pytest.mark.parametrize(
    ("family", "file", "content", "message"),
    [
        ("marian", "config.json", '{"model_type": "bert"}', "model_type 'bert' is of no family"),
        ("marian", "config.json", "{", "config.json: not a JSON object"),
        ("marian", "config.json", "[" * 100_000, "config.json: not a JSON object"),
        ("marian", "config.json", "[]", "config.json: not a JSON object"),
        ("marian", "config.json", '{"model_type": null}', "model_type None is of no family"),
        ("marian", "config.json", None, "no model of a family that is known here"),
        ("marian", "source.spm", None, "source.spm: missing"),
        ("marian", "source.spm", "x", "source.spm: not a SentencePiece model"),
        ("marian", "vocab.json", '{"a": 0, "b": 0}', "each token an id of its own"),
        ("marian", "vocab.json", '{"a": 0, "b": []}', "each token an id of its own"),
        ("marian", "vocab.json", '{"</s>": 0, "<pad>": 1}', "the tokeniser has no <unk>"),
        ("marian2", "target_vocab.json", None, "target_vocab.json: missing"),
        ("marian", "model.safetensors", None, "model.safetensors: missing"),
        ("marian", "model.safetensors", "x", "the weights cannot be read"),
        ("m2m100", "vocab.json", None, "vocab.json: missing"),
        ("nllb", "sentencepiece.bpe.model", None, "the tokeniser is missing"),
        ("mbart50", "tokenizer.json", "{}", "not a tokenizer.json"),
        ("t5", "spiece.model", None, "the tokeniser is missing"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_bad_files_are_named_in_one_line(
    copy: Callable[[str], Path],
    family: str,
    file: str,
    content: str | None,
    message: str,
    engine: Engine,
) -> None:
    folder = copy(family)
    if content is None:
        (folder / file).unlink()
        if file == "vocab.json" and family == "m2m100":
            write_json(folder / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer"})
    else:
        (folder / file).write_text(content)
    with pytest.raises(UserError, match=message) as error:
        translator(folder, engine)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tokenizer_that_fails_is_named_in_one_line(
    copy: Callable[[str], Path], engine: Engine
) -> None:
    """It loads; the first word that it does not know fails."""
    folder = copy("mbart50")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"].pop("unk_id", None)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(UserError, match=r"tokenizer\.json: the tokenizer fails") as error:
        translator(folder, engine).translate(["Jan 漢字."])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("vocab_size", 10**9, "vocab_size is 1,000,000,000, but the tokeniser has"),
        ("max_position_embeddings", 10**9, "max_position_embeddings must be at most 16,384"),
        ("encoder_layers", 10**9, "encoder_layers must be at most 1,000"),
        ("d_model", 2 * 10**9, "d_model must be at most 16,384"),
    ],
)
def test_sizes_take_no_memory_on_the_word_of_a_file(
    copy: Callable[[str], Path], key: str, value: int, message: str
) -> None:
    folder = copy("marian")
    write_json(
        folder / "config.json", {**json.loads((folder / "config.json").read_text()), key: value}
    )
    with pytest.raises(UserError, match=f"config.json: {message}"):
        translator(folder)


def test_the_weights_bound_the_memory(copy: Callable[[str], Path]) -> None:
    folder = copy("marian")
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, "encoder_layers": 30, "encoder_ffn_dim": 1 << 16})
    with pytest.raises(UserError, match=r"its settings describe .* its files have"):
        translator(folder)


def test_weights_of_another_size(copy: Callable[[str], Path]) -> None:
    folder = copy("marian")
    config = (folder / "config.json").read_text().replace('"d_model": 32', '"d_model": 64')
    (folder / "config.json").write_text(config)
    with pytest.raises(UserError, match="the weights ") as error:
        translator(folder)
    assert "\n" not in str(error.value)
