"""Folders that sentence-transformers loads with nothing of ours, and their record of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from paraloom.models.embeddings.export.tokenizer_words import equal_share, words_tokenizer
from tests.models.embeddings.export.test_tokenizers import ODD, differing
from tests.run_helpers import Capsys
from tests.sample import english_sentences, odd_sentences
from tests.small_encoder import encoder_of_texts

ELSEWHERE = """
import json, sys
sys.modules["paraloom"] = None  # nothing of ours can be imported
import numpy as np, torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

texts, folder = json.loads(sys.stdin.read()), sys.argv[1]
model = SentenceTransformer(folder, device="cpu")
np.save(folder + ".npy", model.encode(texts))
loss = MultipleNegativesRankingLoss(model, scale=1.0)
optimizer = torch.optim.SGD(loss.parameters(), lr=1.0)
losses = []
for _ in range(3):
    sides = [["A dog runs.", "A cat sits."], ["The dog is running.", "The cat is sitting."]]
    value = loss([model.preprocess(side) for side in sides], None)
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    losses.append(value.item())
assert losses[2] < losses[0], losses
after = model.encode(texts)
model.save(folder + ".trained")
assert (SentenceTransformer(folder + ".trained", device="cpu").encode(texts) == after).all()
"""


def found(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return dict(record["sentence_transformers"])


def test_nothing_of_ours_is_needed(tmp_path: Path) -> None:
    """In a process that cannot import Paraloom: the same vectors, and training goes on."""
    saved, folder = encoder_of_texts(english_sentences(300)), tmp_path / "model"
    saved.save(folder)
    texts = [*ODD, *odd_sentences(300), "dog " * 10_000]
    (tmp_path / "empty").mkdir()
    subprocess.run(
        [sys.executable, "-I", "-c", ELSEWHERE, str(folder)],
        input=json.dumps(texts),
        text=True,
        cwd=tmp_path / "empty",
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=True,
    )
    np.testing.assert_allclose(np.load(f"{folder}.npy"), saved.embed(texts), atol=1e-6)


def test_the_share_of_sentences_with_the_same_tokens(tmp_path: Path, capsys: Capsys) -> None:
    texts = english_sentences(5000)
    saved = encoder_of_texts(texts[:300])
    saved.save(tmp_path / "model", texts=[pa.array(texts[:3000]), pa.array(texts)])
    assert found(tmp_path / "model") == {"native": True, "equal_sentences": 1}
    assert capsys.readouterr().err == ""
    assert all(path.stat().st_mode & 0o044 for path in (tmp_path / "model").rglob("*"))
    strange = [".N'C.(", "2c,r", "\u0301.-&U ."]  # of the few that are cut otherwise
    words = saved.vocabularies["words"]
    text = pa.array([*texts[:20], *strange, None])
    counted = equal_share(words_tokenizer(words), words, [text[:10], text[10:]])
    others = len(differing(text.drop_null().to_pylist(), words))
    assert others and counted == (23 - others) / 23
    assert equal_share(words_tokenizer(words), words, []) == 1


def test_a_language_whose_rules_are_not_said_exactly(tmp_path: Path, capsys: Capsys) -> None:
    saved = encoder_of_texts(english_sentences(300), language="tr")  # sacremoses' rules
    saved.save(tmp_path / "model", texts=[pa.array(["U`a. 3. x'y"] * 100)])
    record = found(tmp_path / "model")
    assert record["native"] and record["equal_sentences"] < 0.5
    share = f"{record['equal_sentences']:.2%} of sentences have the same tokens"
    assert share in capsys.readouterr().err
