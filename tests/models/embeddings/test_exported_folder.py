"""Folders that sentence-transformers loads with nothing of ours: tokens, vectors, their record."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paraloom.models.embeddings.datasets.similarity import read_sts
from paraloom.models.embeddings.tokenizer_words import equal_share, words_tokenizer
from paraloom.models.embeddings.vocabulary import Vocabulary
from tests.models.embeddings.encoders.test_encoders import rows_of
from tests.run_helpers import Capsys
from tests.sample import SIMILARITY, english_sentences, odd_sentences
from tests.small_encoder import encoder_of_texts, vocabulary_of

ODD = (
    *("", " ", "\t", ".", "...", "-", "--", "'", '"', "!?", "¿Qué?", "\u2028", "…", "a", "A."),
    "A dog runs.",
    "Mr. and Mrs. Smith met Dr. J. R. Brown at 5 p.m. on Jan. 3rd, No. 5, in the U.S. of A.",
    "I don't think it's John's; they'd've said 'no' in the '90s, or rock 'n' roll.",
    "\"Quotes,\" she said, “curly ones” and ‘single’, `back` and ``double''.",
    "1,000.5 km, 3-4, 10:30, 50%, $1,234,567.89, 1.2.3, v2.0, 3,a and ,5",
    "See http://a.b/c?d=1&e=2, www.example.com, me@example.org or C:\\file_name.txt",
    "😀 👍🏽 👨\u200d👩\u200d👧 🇨🇿 ❤️ great!!! :-) <3 #tag @name",
    "Žluťoučký kůň úpěl ďábelské ódy. İstanbul, ŒUVRE, STRASSE, straße, ǅ, ﬁ, Å, e\u0301",
    "Привет, мир. Γειά σου Κόσμε. 你好,世界。 こんにちは 안녕하세요 नमस्ते สวัสดี שלום مرحبا",
    "<unk> <s> </s> [UNK] [CLS] ##ing ▁word &amp; &#39; <b>bold</b> {x} | a|b",
    "one\u00a0two\u2003three\u200bfour\ufefffive\u0085six\x01seven\u00adeight",
    "wait...what.. no.... etc. Well-known -- and re-elected – or—so; e.g. this, i.e. that (p. 5).",
    "x" * 1000,
    "The cat sat on the mat, and the dog on the log. " * 8,
)
"""Sentences that tokenisers often see differently."""


def vocabulary(texts: Sequence[str], language: str = "en", size: int | None = None) -> Vocabulary:
    return vocabulary_of([pa.array(texts, pa.string())], language=language, max_size=size)


def differing(texts: Sequence[str], words: Vocabulary) -> list[str]:
    """The texts of which the two give other ids."""
    ours = rows_of(words.ids(pa.array(texts, pa.string())))
    theirs = [found.ids for found in words_tokenizer(words).encode_batch(texts)]
    return [text for text, a, b in zip(texts, ours, theirs, strict=True) if a != b]


@pytest.mark.parametrize("size", [None, 100])
def test_the_same_ids_on_the_sample(size: int | None) -> None:
    texts = [*english_sentences(1500), *odd_sentences(500), *ODD]
    for data in read_sts(SIMILARITY):
        texts += [*data.first.to_pylist(), *data.second.to_pylist()]
    assert differing(texts, vocabulary(texts, size=size)) == []


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("cs", ["Pan Dr. J. Novák má 3. října 1,5 mil. Kč, tj. málo.", "Žluťoučký kůň!"]),
        ("fr", ["L'été de M. Hulot, c'est-à-dire aujourd'hui l'art.", "Qu'est-ce que c'est ?"]),
        ("de", ["Z. B. am 3. Mai, d.h. Nr. 5 der Fa. Müller & Co.", "Er hat's gesagt."]),
        ("fi", ["EU:n päätös, n. 5 kpl klo 10:30.", "Rock'n'roll oy:ssä."]),
        ("sv", ["EU:s beslut kl. 10:30.", "Det är USA:s, sa han."]),
        ("zh", ["猫はIBMを买 3 2.5元。《红楼梦》", "IBM 公司；Café\u200b中文"]),
        ("th", ["สวัสดี ชาวโลก 2.0", "น้ำ ABC"]),
    ],
)
def test_other_languages(language: str, texts: list[str]) -> None:
    assert differing(texts, vocabulary(texts, language)) == []


def test_the_unknown_entry_is_not_found_in_text() -> None:
    tokenizer = words_tokenizer(Vocabulary(["unk", "<", ">", "s", "/"]))
    assert tokenizer.encode("<s> <unk>").ids == [2, 4, 3, 2, 1, 3]


WORDS = vocabulary(english_sentences(300))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("tr", "İstanbul'da 1.000 kişi 'evet' dedi."),
        ("uk", "Він з'їв п'ять яблук, 5-й день."),
        ("ko", "그는 5권의 '책'을 읽었다."),
        ("fa", "من می\u200cخواهم ۵ کتاب بخرم؟"),
        ("hi", "राम's घर: लड़की ने 20वीं किताब पढ़ी।"),
        ("ml", "അവന്\u200d പുസ്തകം വായിക്കുന്നു."),
        ("bn", "আমি ৫টি বই কিনেছি।"),
    ],
)
def test_the_same_ids_in_languages_of_sacremoses(language: str, text: str) -> None:
    assert differing([text], vocabulary([text], language)) == []


TOKENIZER = words_tokenizer(WORDS)
LETTERS = st.text("abcxyzABCÉß", min_size=3, max_size=9)  # no abbreviation of English


@settings(max_examples=60)
@given(st.lists(LETTERS, min_size=1, max_size=8), st.sampled_from(["", ".", "!", " ?", "...", '"']))
def test_plain_sentences_are_always_equal(words: list[str], end: str) -> None:
    assert differing([", ".join(words) + end, "-".join(words)], WORDS) == []


@settings(max_examples=60)
@given(st.text(max_size=40), st.text(" .,'-`\u0301\u200d\u0903\u2029aB1😀", max_size=20))
def test_no_text_makes_the_pipeline_fail(one: str, other: str) -> None:
    assert len(TOKENIZER.encode_batch([one, other, f"{one} {other}"])) == 3


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
