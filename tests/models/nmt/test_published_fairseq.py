"""fairseq's published models: BPE codes, several checkpoints, older forms."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paraloom.models.errors import UserError
from paraloom.models.nmt.families import open_model
from paraloom.models.nmt.families.fairseq import FairseqModel, read_state
from paraloom.models.nmt.families.moses_bpe import MosesBpe
from tests.fairseq_models import make
from tests.small_model import new_pairs

from .conftest import CZECH, translator

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


def test_older_checkpoints(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_files_that_are_missing(copy: Path) -> None:
    (copy / "bpecodes").unlink()
    with pytest.raises(
        UserError, match=r"the tokeniser is missing .*sentencepiece\.model or .*bpe"
    ):
        open_model(copy).subwords()
    (copy / "dict.en.txt").unlink()
    with pytest.raises(UserError, match=r"dict\.en\.txt: missing, but the checkpoint names"):
        open_model(copy)
    (copy / "model.pt").unlink()
    with pytest.raises(UserError, match=r"nearest is fairseq's, which has \*\.pt, dict\.\*\.txt, "):
        open_model(copy)
