"""fairseq's published form beside its hub interface, with subword-nmt."""

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch

from paraloom.models.nmt import NmtOptions, Translator, engine, fairseq_run
from tests.fairseq_models import make
from tests.hub_models import pairs

pytest.importorskip("subword_nmt")

ODD = (
    'It\'s a "dog" & cat\'s <b>|x[y]', "well-known 3-4 a--b", "a", "don't  can\u00a0not",
    "http://x.y/z?a=b&c 10,000.5 U.S. e.g.", "„quoted“ - x", "\u4f60\u597d\u4e16\u754c",
    "\U0001f600 a\u0301", "@@ x@@ y @-@ &amp; &lt;s&gt; </s> <unk>", "tab\there", "x" * 200,
)  # fmt: skip


@pytest.fixture(scope="module", params=[False, True], ids=["apart", "joined"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return make(tmp_path_factory.mktemp("bpe") / "model", joined=request.param, steps=500)


@pytest.fixture(scope="module")
def hub(trained: Path) -> Any:
    """fairseq's own interface to the folder."""
    from fairseq.data import data_utils
    from fairseq.models.transformer import TransformerModel

    data_utils.batch_by_size = fairseq_run._batch_by_size  # without a compiler
    with torch.serialization.safe_globals([argparse.Namespace]):
        found = TransformerModel.from_pretrained(
            str(trained), "model.pt", str(trained), tokenizer="moses", bpe="subword_nmt"
        ).eval()
    found.cfg.dataset.max_tokens = 10_000
    return found


def test_subwords_are_those_of_fairseq(trained: Path, hub: Any) -> None:
    ours = Translator(trained, NmtOptions(), threads=1)._subwords
    for text in (*ODD, *(source for source, _ in pairs())):
        (pieces,) = ours.encode([text])
        assert pieces == hub.apply_bpe(hub.tokenize(text)).split(), text
        assert ours.decode(pieces) == hub.detokenize(hub.remove_bpe(" ".join(pieces))), text


@pytest.mark.parametrize("beam", [1, 4, 12])
def test_translations_are_those_of_fairseq(
    trained: Path, hub: Any, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "longest_translation", lambda subwords: 201)  # as there
    sources = [source for source, _ in pairs()[:100]]
    rows = Translator(trained, NmtOptions(beam=beam), threads=1).translate(sources)[0].to_pylist()
    given = [hub.encode(source) for source in sources]
    found = hub.generate(given, beam=beam, max_len_a=0, max_len_b=200)
    equal = 0
    for (best, *_), row in zip(found, rows, strict=True):
        if row["translation"] is None and len(best["tokens"]) > 200:
            equal += 1  # a loop, which fairseq ends there
        elif row["translation"] == hub.decode(best["tokens"]).strip():
            equal += 1
            assert row["translation_score"] == pytest.approx(float(best["score"]), abs=1e-3)
    assert equal >= 0.98 * len(sources)
