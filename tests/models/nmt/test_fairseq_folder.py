"""fairseq's model folders, ours and published ones; bad ones end in one line."""

import argparse
import io
import pickle
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paraloom.models.errors import UserError
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.fairseq import FairseqModel, read_state
from paraloom.models.nmt.families.subwords import MosesBpe
from paraloom.models.nmt.translate import Translator
from tests.fairseq_models import make
from tests.run_helpers import Patch, refuses
from tests.small_model import new_pairs

from .conftest import CZECH, Malicious, translator


def refused(model: Path, message: str) -> None:
    with refuses(message):
        FairseqModel(model).load()


@pytest.mark.parametrize("legacy", [False, True, None], ids=["zip", "legacy", "plain pickle"])
def test_a_checkpoint_that_holds_code_is_refused(
    model: Path, tmp_path: Path, legacy: bool | None, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # must not weaken us
    trace = tmp_path / "trace"
    state = read_state(model / "checkpoint.pt") | {"extra_state": Malicious(trace)}
    if legacy is None:
        (model / "checkpoint.pt").write_bytes(pickle.dumps(Malicious(trace)))
    else:
        torch.save(state, model / "checkpoint.pt", _use_new_zipfile_serialization=not legacy)
    refused(model, r"checkpoint\.pt: refused: it is damaged, or contains code")
    with pytest.raises(
        UserError, match=r"checkpoint\.pt: refused: it is damaged, or contains code"
    ) as error:
        Translator(model, threads=1)
    assert "weights_only` set to `False" not in str(error.value)
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
    (tmp_path / "empty").mkdir()
    for none in ("nowhere", "empty"):
        with pytest.raises(
            UserError, match=f"{none}: not a model folder; name the folder that con"
        ):
            open_model(tmp_path / none)
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
    with pytest.raises(UserError, match=r"fairseq models also need \*\.pt, sentencepiece\.m"):
        open_model(model)


def test_weights_that_are_not_numbers_are_refused(model: Path) -> None:
    state = read_state(model / "checkpoint.pt")
    state["model"]["decoder.layers.0.fc2.bias"][:] = torch.nan  # which no ReLU hides
    torch.save(state, model / "checkpoint.pt")
    with pytest.raises(UserError, match="the model gives no valid probabilities"):
        Translator(model, threads=1)


def test_a_damaged_dictionary_is_named(model: Path) -> None:
    """Binary, without counts, with a word twice, in another encoding; larger than the weights."""
    path = model / "dict.cs.txt"
    whole, other = path.read_bytes(), "k\u016f\u0148 1\n".encode("cp1250")
    for content in (b"\x00\xff\xfe" * 9, b"one\ntwo\n", b"one 1\none 1\n", other):
        path.write_bytes(content)
        refused(model, r"dict\.cs\.txt: not a fairseq dictionary")
    for language in ("cs", "en"):
        (model / f"dict.{language}.txt").write_bytes(whole + b"extra 1\n")
    refused(model, "not a translation transformer with these dictionaries .*size mismatch")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder_attention_heads": 0}, "not a translation transformer"),
        ({"arch": "transformer_lm"}, "its architecture is transformer_lm"),
        ({"source_lang": "../../cs"}, "missing, but the checkpoint names this language"),
        ({"encoder_layers": 10**9}, "cannot be loaded: its settings describe"),
    ],
)
def test_settings_that_no_model_has(model: Path, settings: dict[str, Any], message: str) -> None:
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


CODES = "#version: 0.2\nl o\nlo w</w>\ne r</w>\nn e\nne w\n"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights; do not change it."""
    return make(tmp_path_factory.mktemp("published") / "model", joined=True)


@pytest.fixture
def copy(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published, tmp_path / "copy")


def bpe(tmp_path: Path, codes: str = CODES) -> MosesBpe:
    path = tmp_path / "bpecodes"
    path.write_text(codes, encoding="utf-8")
    return MosesBpe(path, "cs", "en")


def test_texts_become_what_fairseqs_hub_interface_makes_of_them(tmp_path: Path) -> None:
    """Written by fairseq with subword-nmt; `tests/peers` compares more of them."""
    tokens = {
        "low lower newer": "low lo@@ w@@ er new@@ er",
        "It's <low> & 3-4.": "I@@ t &@@ a@@ p@@ o@@ s@@ ;@@ s &@@ l@@ t@@ ; low &@@ g@@ t@@ ; "
        "&@@ a@@ m@@ p@@ ; 3 @@@ -@@ @ 4 .",
        " ": "",
        "ž": "ž",
    }
    subwords = bpe(tmp_path)
    for text, wanted in tokens.items():
        assert subwords.encode([text], target=True) == [wanted.split()], text
        (pieces,) = subwords.encode([text], target=True)
        assert subwords.decode(pieces) == text.replace("<low>", "< low >").strip()  # as Moses


def test_the_three_forms_of_codes(tmp_path: Path) -> None:
    fast = "l o 9\nlo w</w> 8\ne r</w> 7\nn e 5\nne w 4\n"
    old = "l o\nlo w\nlow </w>\ne r\ner </w>\nn e\nne w\n"
    for codes in (fast, old):
        assert bpe(tmp_path, codes).encode(["low newer"]) == [["low", "new@@", "er"]]
    twice = "#version: 0.2\na b\nb c</w>\na b\n"
    assert bpe(tmp_path, twice).encode(["abc"]) == [["ab@@", "c"]]  # the first counts
    for codes in ("", "l o\nx\n", "l o 1\nl o\n", "\ufeff\x00"):
        with pytest.raises(UserError, match="bpecodes: not BPE codes"):
            bpe(tmp_path, codes)


def test_probabilities_are_those_of_the_network(published: Path) -> None:
    loaded, subwords = FairseqModel(published).load(), FairseqModel(published).subwords()
    pairs = new_pairs(12)
    truth = []
    for source, target in pairs:
        (given,), (wanted,) = subwords.encode([source]), subwords.encode([target], target=True)
        x = torch.tensor([[*map(loaded.source.index, given), 2]])
        y = torch.tensor([*map(loaded.target.index, wanted), 2])
        with torch.no_grad():
            logits, _ = loaded.network(x, torch.tensor([x.shape[1]]), y[None].roll(1))
        truth.append(float(logits[0].log_softmax(-1).gather(1, y[:, None]).mean()))
    found = translator(published).score(*zip(*pairs, strict=True))
    np.testing.assert_allclose(found, truth, atol=1e-4)


def test_several_checkpoints(copy: Path) -> None:
    """One is named, or those of one training are averaged."""
    state = read_state(copy / "model.pt")
    shifted = {key: weight + 0.01 for key, weight in state["model"].items()}
    (copy / "model.pt").rename(copy / "model1.pt")
    torch.save({**state, "model": shifted}, copy / "model2.pt")
    torch.manual_seed(2)
    other = {key: torch.randn_like(weight.float()) for key, weight in state["model"].items()}
    torch.save({**state, "model": other}, copy / "model3.pt")
    with pytest.raises(UserError, match=r"3 checkpoints; name one \(.*model1\.pt\), or the aver"):
        open_model(copy)
    one = open_model(copy / "model1.pt", CZECH)
    assert isinstance(one, FairseqModel) and one.languages == ("cs", "en")
    both = open_model(copy / "model1.pt:model2.pt", CZECH)
    assert isinstance(both, FairseqModel) and both.digest != one.digest
    for key, weight in both._state()["model"].items():
        torch.testing.assert_close(weight, state["model"][key] + 0.005)
    mixed = open_model(copy / "model1.pt:model3.pt")
    with pytest.raises(UserError, match=r"from several trainings, .*name one \(.*model1\.pt\)"):
        mixed.converted()
    with pytest.raises(UserError, match=r"model9\.pt: .*No such file"):
        open_model(copy / "model1.pt:model9.pt").converted()


def test_older_checkpoints(copy: Path, monkeypatch: Patch) -> None:
    """In torch's form before 1.6, with meters of fairseq's, which stand for nothing."""
    before = translator(copy).score(["Máš nová trička?"], ["Hello."])
    state = read_state(copy / "model.pt")
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters"})

    import fairseq.meters

    monkeypatch.setattr(fairseq.meters, "AverageMeter", meter, raising=False)
    made: Any = meter()
    made.val = 3
    old = {**state, "extra_state": {"train_meters": {"loss": made}}}
    torch.save(old, copy / "model.pt", _use_new_zipfile_serialization=False)
    assert open_model(copy).languages == ("cs", "en")
    assert translator(copy).score(["Máš nová trička?"], ["Hello."]) == before
