"""fairseq's model folders: what is read of them, and bad ones, which end in one line."""

import argparse
import io
import pickle
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.errors import UserError
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.fairseq import FairseqModel, read_state
from paraloom.models.nmt.translate import Translator

from .conftest import Malicious


def refused(model: Path, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        FairseqModel(model).load()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("legacy", [False, True, None], ids=["zip", "legacy", "plain pickle"])
def test_a_checkpoint_that_holds_code_is_refused(
    model: Path, tmp_path: Path, legacy: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # must not weaken us
    trace = tmp_path / "trace"
    state = read_state(model / "checkpoint.pt") | {"extra_state": Malicious(trace)}
    if legacy is None:
        (model / "checkpoint.pt").write_bytes(pickle.dumps(Malicious(trace)))
    else:
        torch.save(state, model / "checkpoint.pt", _use_new_zipfile_serialization=not legacy)
    refused(model, r"checkpoint\.pt: refused, it is damaged, or holds code")
    with pytest.raises(UserError, match=r"checkpoint\.pt: refused, it is damaged, or holds code"):
        Translator(model, threads=1)
    assert not trace.exists()


@given(start=st.integers(0, 1 << 16), new=st.binary(max_size=8), zipped=st.booleans())
def test_damaged_bytes_are_one_line(start: int, new: bytes, zipped: bool) -> None:
    state = {"model": {"w": torch.ones(2, 3)}, "args": argparse.Namespace(arch="transformer")}
    stream = io.BytesIO()
    torch.save(state, stream, _use_new_zipfile_serialization=zipped)
    data = stream.getvalue()
    start %= len(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        path.write_bytes(data[:start] + new + data[start + len(new) + 1 :])
        try:
            found = read_state(path)
        except UserError as error:
            assert "\n" not in str(error) and str(error).startswith(f"{path}: ")
        else:  # where the bytes are not checked
            assert isinstance(found, dict)


def test_missing_files_are_named(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: no such model folder"):
        open_model(tmp_path / "nowhere")
    (model / "dict.cs.txt").rename(model / "dict.sk.txt")
    refused(model, r"dict\.cs\.txt: missing, but the checkpoint names this language")
    with pytest.raises(UserError, match=r"dict\.cs\.txt: missing"):
        open_model(model)  # which does not load the checkpoint
    (model / "dict.sk.txt").rename(model / "dict.cs.txt")
    assert open_model(model).languages == ("cs", "en")
    (model / "sentencepiece.model").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"sentencepiece\.model: not a SentencePiece model"):
        open_model(model).subwords()
    (model / "sentencepiece.model").unlink()
    with pytest.raises(UserError, match=r"tokeniser is missing .*\(sentencepiece\.model or "):
        open_model(model).subwords()
    torch.save({"weights": torch.zeros(2)}, model / "checkpoint.pt")
    refused(model, "not a fairseq checkpoint")
    (model / "checkpoint.pt").unlink()
    with pytest.raises(UserError, match=r"nearest is fairseq's, .* here is no \*\.pt, sentencep"):
        open_model(model)


def test_weights_that_are_not_numbers_are_refused(model: Path) -> None:
    state = read_state(model / "checkpoint.pt")
    state["model"]["decoder.layers.0.fc2.bias"][:] = torch.nan  # which no ReLU hides
    torch.save(state, model / "checkpoint.pt")
    with pytest.raises(UserError, match="the model gives a translation no probability"):
        Translator(model, threads=1)


@pytest.mark.parametrize(
    "content",
    [b"\x00\xff\xfe" * 9, b"one\ntwo\n", b"one 1\none 1\n", "k\u016f\u0148 ž 1\n".encode("cp1250")],
    ids=["binary", "no counts", "doubled", "another encoding"],
)
def test_a_damaged_dictionary_is_named(model: Path, content: bytes) -> None:
    (model / "dict.cs.txt").write_bytes(content)
    refused(model, r"dict\.cs\.txt: not a fairseq dictionary")


def test_dictionaries_that_do_not_fit_are_an_error(model: Path) -> None:
    for language in ("cs", "en"):
        path = model / f"dict.{language}.txt"
        path.write_text(path.read_text() + "extra 1\n")
    refused(model, "not a translation transformer of these dictionaries .*size mismatch")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder_attention_heads": 0}, "not a translation transformer"),
        ({"arch": "transformer_lm"}, "its architecture is transformer_lm"),
        ({"source_lang": "../../cs"}, "missing, but the checkpoint names this language"),
        ({"encoder_ffn_embed_dim": 10**9}, "cannot be loaded: its settings describe"),
        ({"encoder_layers": 10**9}, "cannot be loaded: its settings describe"),
    ],
)
def test_settings_that_no_model_has_are_one_line(
    model: Path, settings: dict[str, Any], message: str
) -> None:
    state = read_state(model / "checkpoint.pt")
    vars(state["args"]).update(settings)
    torch.save(state, model / "checkpoint.pt")
    refused(model, message)


def test_half_precision_weights_and_settings_in_cfg_load_too(model: Path) -> None:
    reference, *_ = FairseqModel(model).load()
    state = read_state(model / "checkpoint.pt")
    settings = vars(state.pop("args"))
    assert (settings["source_lang"], settings["target_lang"]) == ("cs", "en")
    languages = {key: settings.pop(key) for key in ("source_lang", "target_lang")}
    hydra = {"_name": settings.pop("arch"), **settings}
    weights = {key: weight.half() for key, weight in state["model"].items()}
    written = {"args": None, "cfg": {"model": hydra, "task": languages}, "model": weights}
    torch.save(written, model / "checkpoint.pt")
    loaded, *_ = FairseqModel(model).load()
    for mine, theirs in zip(loaded.parameters(), reference.parameters(), strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, theirs, atol=1e-2, rtol=1e-2)


def test_fairseq_itself_loads_what_training_wrote(model: Path) -> None:
    from fairseq import checkpoint_utils

    with torch.serialization.safe_globals([argparse.Namespace]):
        models, _ = checkpoint_utils.load_model_ensemble(
            [str(model / "checkpoint.pt")], arg_overrides={"data": str(model)}
        )
    mine, *_ = FairseqModel(model).load()
    for key, weight in models[0].state_dict().items():
        assert torch.equal(weight, mine.state_dict()[key]), key
