"""Tokens of languages other than English: against the tokenisers themselves."""

import sys

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mosestokenizer import MosesTokenizer

from paraloom.models.languages import differ, is_unspaced, language_name, no_code, short_code
from paraloom.models.text import tokens
from paraloom.models.text.tokens import moses_tokens

# fmt: off
WORDS = st.sampled_from([
    "L'été", "aujourd'hui", "qu'il", "M.", "p.", "c.-à-d.", "n°", "3,5", "1.000", "z.B.", "Nr.",
    "bzw.", "Straße", "Žluť", "tzn.", "atd.", "O'Neil", "dell'arte", "S.p.A.", "«", "»", "„", "“",
    "-", "…", "?", "http://a.b/c?d=e", "&amp;", "日本", "20.", "'s", "a", "Ali'nin", "!",
])
# fmt: on
SENTENCES = st.lists(WORDS, max_size=12).map(" ".join)


def rows(texts: list[str], language: str) -> list[list[str]]:
    column = pa.array(texts, pa.string())
    found: list[list[str]] = moses_tokens(column, language, lower=False).to_pylist()
    return found


@pytest.mark.parametrize("language", ["fr", "cs", "de", "it"])
def test_tokens_are_those_of_moses(language: str) -> None:
    moses = MosesTokenizer(language)

    @given(st.lists(SENTENCES, max_size=20))
    @settings(max_examples=60)
    def check(texts: list[str]) -> None:
        assert rows(texts, language) == [moses.tokenize(text) for text in texts]

    check()


@pytest.mark.parametrize("language", ["tr", "uk", "ko", "xx"])
@given(texts=st.lists(SENTENCES, max_size=10))
@settings(max_examples=12)
def test_what_moses_does_not_know_sacremoses_tokenises(language: str, texts: list[str]) -> None:
    from sacremoses import MosesTokenizer as SacreMoses

    python = SacreMoses(language)
    assert rows(texts, language) == [python.tokenize(text, escape=False) for text in texts]


def test_without_moses_sacremoses_tokenises(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["L'été de M. Hulot, n° 3,5.", "«Qu'il vienne aujourd'hui», dit-il…"]
    expected = rows(texts, "fr")
    monkeypatch.setitem(sys.modules, "mosestokenizer", None)
    tokens._tokenizer.cache_clear()
    assert tokens._tokenizer("fr").func.__module__.startswith("sacremoses")  # type: ignore[attr-defined]
    assert rows(texts, "fr") == expected
    tokens._tokenizer.cache_clear()


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("zh", "他在2024年买了iPhone 15。", "他 在 2024 年 买 了 iPhone 15 。"),
        ("zho_Hant", "價格是3,999元！", "價 格 是 3 , 999 元 ！"),
        ("ja", "「コーヒー」を　飲む", "「 コ ー ヒ ー 」 を 飲 む"),
        ("th", "ฉันชอบน้ำ 12 บาท", "ฉั น ช อ บ น้ ำ 12 บ า ท"),
        ("km", "ខ្ញុំ", "ខ្ ញុំ"),
        ("lo", "ນ້ຳ", "ນ້ ຳ"),
        ("my", "မြန်မာ", "မြ န် မာ"),
        ("bo", "བཀྲ་ཤིས", "བ ཀྲ ་ ཤི ས"),
        ("ja", "Жанна a\u200bb\0c ①", "Жанна ab c ①"),
    ],
)
def test_letters_are_tokens_without_spaces(language: str, text: str, expected: str) -> None:
    assert rows([text, "", " "], language) == [expected.split(), [], []]


@pytest.mark.parametrize("language", ["en", "fr", "tr", "ja"])
@given(texts=st.lists(st.text(), min_size=1, max_size=5))
@settings(max_examples=40)
def test_no_text_shifts_a_row(language: str, texts: list[str]) -> None:
    together = rows(texts, language)
    assert together == [rows([text], language)[0] for text in texts]
    assert all(token and " " not in token for row in together for token in row)


@pytest.mark.parametrize("code", ["cs", "ces", "cze", "cz", "ces_Latn", "cs-CZ", "CS"])
def test_every_spelling_of_a_language_has_the_same_tokens(code: str) -> None:
    assert short_code(code) == "cs"
    assert language_name(code) == "Czech"
    text = "Dr. Novák, tzn. pes."
    assert rows([text], code) == [MosesTokenizer("cs").tokenize(text)]


def test_all_unspaced_languages() -> None:
    unspaced = "zh ja th km lo my bo dz yue wuu ii cmn zho_Hans zh-TW jpn_Jpan tha_Thai khm_Khmr"
    assert all(map(is_unspaced, unspaced.split()))
    assert not any(map(is_unspaced, ["ko", "vi", "en", "ar", "hi", "zh-Latn", "xx", ""]))


@given(st.text(max_size=12))
def test_any_text_is_taken_for_a_code(code: str) -> None:
    assert isinstance(short_code(code), str) and isinstance(language_name(code), str)
    is_unspaced(code)


@pytest.mark.parametrize("code", ["cs", "ces_Latn", "pt-BR", "nb", "tlh", "qaa", "sr-Latn", "ger"])
def test_codes_of_any_standard_are_codes(code: str) -> None:
    assert no_code(code) == ""


def test_languages_that_differ() -> None:
    near = [("cs", "sk"), ("hr", "bs"), ("hr", "sr"), ("nb", "da"), ("no", "nn"), ("id", "ms")]
    assert not any(differ(a, b) or differ(b, a) for a, b in [*near, ("en", "xx"), ("", "en")])
    others = [("cs", "en"), ("de", "fr"), ("deu_Latn", "eng"), ("cs", "pl")]
    assert all(differ(a, b) for a, b in others)
