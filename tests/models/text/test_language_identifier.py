"""Languages: identifiers of the user's own, and tokens against the tokenisers themselves."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mosestokenizer import MosesTokenizer

from paraloom.models.chat.prompts import variables
from paraloom.models.errors import UserError
from paraloom.models.languages import (
    differ,
    is_unspaced,
    language_name,
    name_with_script,
    no_code,
    short_code,
)
from paraloom.models.text import tokens
from paraloom.models.text.language_identifier import (
    OwnIdentifier,
    Spoken,
    check_language,
    may_be,
    spoken,
)
from paraloom.models.text.tokens import moses_tokens
from tests.run_helpers import Patch

TEXTS = pa.array(["Pes běží.", "Dogs\nrun.", "12:30", ""])


def own(folder: Path, result: str) -> OwnIdentifier:
    """An identifier whose function returns `result`, an expression."""
    path = folder / "own.py"
    path.write_text(f"def identify(texts):\n    return {result}\n")
    return OwnIdentifier.find(f"{path}:identify")


def one(folder: Path, found: Any) -> OwnIdentifier:
    return own(folder, f"[{found!r} for text in texts]")


@pytest.mark.parametrize("code", ["cs", "CS", "ces", "ces_Latn", "__label__ces_Latn", "cs-CZ"])
def test_codes_in_any_notation(code: str, tmp_path: Path) -> None:
    given: Any
    for given in (
        {code: 0.9},
        [(code, 0.9)],
        {"en": 0.8, code: 0.1},
        [(code, 0.06), ("ces", 0.05)],
    ):
        found = one(tmp_path, given)
        for asked in ("cs", "CES", "ces_Latn"):
            assert may_be(TEXTS, asked, found).tolist() == [True, True, False, False]
        assert not may_be(TEXTS, "sk", found).any()
    assert not may_be(TEXTS, "cs", one(tmp_path, {code: 0.09})).any()


def test_scripts_and_synonyms(tmp_path: Path) -> None:
    def same(code: str, asked: str) -> bool:
        return bool(may_be(TEXTS[:1], asked, one(tmp_path, {code: 1.00001}))[0])

    assert same("srp_Latn", "sr") and same("srp_Latn", "sr-Latn") and same("cmn_Hani", "zh")
    assert same("nob_Latn", "no") and same("NB", "nb") and same("tgl_Latn", "tl")
    assert same("tdt", "tdt_Latn") and same("zxx", "zxx")
    assert not same("srp_Cyrl", "sr-Latn") and not same("sr", "hr")


def test_the_texts_have_letters_and_no_line_feeds(tmp_path: Path) -> None:
    """A chunked column is as one array; a probability may be one of NumPy's."""
    result = "[{'cs': __import__('numpy').float32(text == 'Dogs run.')} for text in texts]"
    found = own(tmp_path, result)
    for texts in (TEXTS, pa.chunked_array([TEXTS[:1], TEXTS[1:]])):
        assert may_be(texts, "cs", found).tolist() == [False, True, False, False]
    assert may_be(TEXTS[2:], "cs", own(tmp_path, "1 / 0")).tolist() == [False, False]


def test_the_prevailing_language(tmp_path: Path) -> None:
    found = own(tmp_path, "[{'CES': .6, 'SLK': .3} if 'Pes' in t else {'ces': .4} for t in texts]")
    assert spoken(TEXTS, "ces_Latn", found) == Spoken(2, "cs", 0.5, 1.0)
    assert spoken(TEXTS, "sk", found) == Spoken(2, "cs", 0.5, 0.5)
    assert spoken(TEXTS, "de", found) == Spoken(2, "cs", 0.5, 0.0)
    assert spoken(TEXTS, "tlh", found) == Spoken(2, "cs", 0.5, None), "it may not know Klingon"
    assert spoken(TEXTS, "tdt", one(tmp_path, {"tdt_Latn": 1})) == Spoken(2, "tdt", 1.0, 1.0)
    assert spoken(TEXTS, "cs", one(tmp_path, {})) == Spoken(0, "", 0.0, None)
    assert spoken(pa.array(["hotel"]), "it").other == 1, "the twelfth language is possible, too"


MUST = "must return codes and probabilities (0 to 1) for each text"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("[{}]", f"{MUST} (ValueError: 1 results for 2 texts)"),
        ("[{'cs': 87} for text in texts]", f"{MUST} (ValueError: 87 for cs)"),
        ("['cs' for text in texts]", f"{MUST} (ValueError: not enough values"),
        ("[{'cs': '0.9'} for text in texts]", f"{MUST} (TypeError: "),
        ("[{1: 0.9} for text in texts]", f"{MUST} (AttributeError: "),
        ("None", "(TypeError: "),
        ("1 / 0", "own.py, line 2 (ZeroDivisionError: division by zero)"),
        ("exit('bye')", "own.py, line 2 (SystemExit: bye)"),
    ],
)
def test_wrong_results(result: str, said: str, tmp_path: Path) -> None:
    found = own(tmp_path, result)
    with pytest.raises(UserError) as error:
        may_be(TEXTS, "cs", found)
    line = str(error.value)
    assert line.startswith(f"input.language_identifier: {found.entry}")
    assert said in line and "\n" not in line


def test_what_cannot_be_loaded(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lid_broken.py").write_text("import nowhere")
    (tmp_path / "lid_syntax.py").write_text("x = (")
    (tmp_path / "lid_value.py").write_text("identify = 3")
    for entry, said in {
        "lid_gone:identify": "No module named 'lid_gone'",
        "lid_broken:identify": "lid_broken.py, line 1 (ModuleNotFoundError: No module named 'now",
        "lid_syntax:identify": "lid_syntax.py, line 1 (SyntaxError",
        "lid_value:identify": "'int' object is not callable",
        ":identify": "Empty module name",
        f"{tmp_path}/gone.py:identify": "cannot be read (No such file or directory)",
        f"{tmp_path}/lid_syntax.py:identify": "lid_syntax.py, line 1 (SyntaxError",
        f"{tmp_path}/lid_value.py:gone": "no attribute 'gone'",
    }.items():
        with pytest.raises(UserError) as error:
            may_be(TEXTS, "cs", OwnIdentifier.find(entry))
        assert str(error.value).startswith(f"input.language_identifier: {entry}")
        assert said in str(error.value) and "\n" not in str(error.value)


def test_workers_need_no_file(tmp_path: Path, monkeypatch: Patch) -> None:
    """They import modules."""
    monkeypatch.syspath_prepend(tmp_path)
    file = one(tmp_path, {"cs": 1})
    sent = pickle.dumps(file)
    (tmp_path / "own.py").rename(tmp_path / "lid_module.py")
    assert may_be(TEXTS, "cs", pickle.loads(sent)).tolist() == [True, True, False, False]
    module = OwnIdentifier.find("lid_module:identify")
    assert module.code == file.code
    assert np.array_equal(may_be(TEXTS, "cs", module), may_be(TEXTS, "cs", file))


def test_an_own_identifier_may_know_any_language() -> None:
    for code in ("tdt", "ces_Latn", "CS", "zh-Hant"):
        check_language(code, own=True)
        with pytest.raises(ValueError, match=f"{code}.*language code of the identifier"):
            check_language(code)
    for code, hint in {"cz": "write cs", "klingon": "codes are as in ISO 639"}.items():
        with pytest.raises(ValueError, match=hint):
            check_language(code, own=True)
    for code, hint in {"nb": "write no", "zh-Hant": "write zh", "fil": "write tl"}.items():
        with pytest.raises(ValueError, match=hint):
            check_language(code)


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


def test_without_moses_sacremoses_tokenises(monkeypatch: Patch) -> None:
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


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("hi", "लड़की ने ५ हिन्दी किताबें पढ़ीं ।"),
        ("ben_Beng", "আমি বই কিনেছি ।"),
        ("ta", "நான் புத்தகம் படித்தேன் ."),
        ("ml", "ഞാൻ പുസ്തകം വായിക്കുന്നു ."),
        ("mni", "ꯑꯩ ꯂꯥꯏꯔꯤꯛ ꯄꯥꯏ ꯫"),
    ],
)
def test_words_keep_their_vowel_signs(language: str, words: str) -> None:
    assert rows([words], language) == [words.split()]


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
    for known in ("cs", "ces_Latn", "pt-BR", "nb", "tlh", "qaa", "sr-Latn", "ger"):
        assert no_code(known) == ""


def test_languages_that_differ() -> None:
    near = [("cs", "sk"), ("hr", "bs"), ("hr", "sr"), ("nb", "da"), ("no", "nn"), ("id", "ms")]
    assert not any(differ(a, b) or differ(b, a) for a, b in [*near, ("en", "xx"), ("", "en")])
    others = [("cs", "en"), ("de", "fr"), ("deu_Latn", "eng"), ("cs", "pl")]
    assert all(differ(a, b) for a, b in others)


def test_prompts_name_an_unusual_script() -> None:
    found = variables("en-GB", "zh_Hant", n=1, json=False)
    assert (found["source_language"], found["target_language"]) == ("English", "Chinese (zh_Hant)")
    names = [name_with_script(code) for code in ("zho_Hans", "zh-TW", "sr-Latn", "pt-BR", "xx")]
    assert names == ["Chinese", "Chinese (zh-TW)", "Serbian (sr-Latn)", "Portuguese", "'xx'"]
