"""Conditions of `input.where` against plain definitions, and what they find among broken lines."""

import re
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.noisy_bitext import KINDS, add_noise, read_sides
from benchmarks.untranslated import CONDITIONS
from paraloom.beam_jobs.transforms.conditions import parse_condition, reasons
from paraloom.models.nmt.families.base import Languages
from paraloom.models.text.language_identifier import LANGUAGES, _model, may_be

TEXT = st.text(
    st.sampled_from("aábČ9 .!?…”)\"'-,:"), min_size=1, max_size=20
).filter(lambda text: bool(text.strip()))  # fmt: skip


def holds(condition: str, source: str, reference: str) -> bool:
    found = reasons(pa.array([source]), pa.array([reference]), [parse_condition(condition)])
    return str(found[0]) == ""


def is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM"


@settings(max_examples=60)
@given(source=TEXT, reference=TEXT)
def test_each_column_is_as_defined(source: str, reference: str) -> None:
    def share(text: str) -> float:
        visible = [c for c in text if not c.isspace()]
        return sum(map(is_letter, visible)) / len(visible)

    def ends(text: str) -> bool:
        return text.rstrip(" \"')”").endswith((".", "!", "?", "…"))

    def plain(text: str) -> list[str]:
        return re.findall(r"[^\W_]+", text.lower())

    for name, text in (("source", source), ("reference", reference)):
        assert holds(f"{name}_letters >= {share(text) - 1e-6:.7f}", source, reference)
        assert not holds(f"{name}_letters > {share(text) + 1e-6:.7f}", source, reference)
        assert holds(f"{name}_characters in {len(text)}..{len(text)}", source, reference)
        word = "yes" if ends(text) else "no"
        assert holds(f"{name}_final_punctuation = {word}", source, reference)
    word = "yes" if ends(source) == ends(reference) else "no"
    assert holds(f"same_final_punctuation = {word}", source, reference)
    word = "yes" if plain(source) == plain(reference) else "no"
    assert holds(f"identical = {word}", source, reference)
    ratio = len(source) / len(reference)
    assert holds(f"character_ratio in {ratio - 1e-6:.7f}..{ratio + 1e-6:.7f}", source, reference)


@pytest.mark.parametrize(
    ("text", "share"), [("हिन्दी", "1"), ("cafe\u0301", "1"), ("cafe\u0301 12 .", "0.625")]
)
def test_a_mark_counts_with_its_letter(text: str, share: str) -> None:
    assert holds(f"source_letters in {share}..{share}", text, "x")
    assert holds(f"reference_letters in {share}..{share}", "x", text)


def count_tokens(text: str, language: str) -> int:
    from sacremoses import MosesTokenizer  # takes a second

    return len(MosesTokenizer(language).tokenize(text))


def test_tokens_are_those_of_moses() -> None:
    text = "He said: \"It's a dog, isn't it?\""
    count = count_tokens(text, "en")
    assert holds(f"source_tokens in {count}..{count}", text, "Ano.")
    assert holds(f"token_ratio in {count / 2}..{count / 2}", text, "Ano.")


def test_each_side_has_the_tokens_of_its_language() -> None:
    text, sides = "Mr. Kos", {"source": "cs", "reference": "en"}
    counts = {name: count_tokens(text, code) for name, code in sides.items()}
    assert counts["source"] != counts["reference"]  # Mr. is an English abbreviation
    both = pa.array([text])
    for name, count in counts.items():
        condition = parse_condition(f"{name}_tokens in {count}..{count}")
        assert reasons(both, both, [condition], Languages("cs", "en")).tolist() == [""]


def test_the_reason_is_the_first_condition_that_fails() -> None:
    sides = pa.array(["a b c", "a b c", "a"]), pa.array(["a b c", "x", "y"])
    conditions = [parse_condition(text) for text in ("source_tokens <=2", "identical= no")]
    assert reasons(*sides, conditions).tolist() == [
        "not source_tokens <= 2",
        "not source_tokens <= 2",
        "",
    ]
    assert reasons(*sides, conditions[::-1]).tolist() == [
        "not identical = no",
        "not source_tokens <= 2",
        "",
    ]
    assert reasons(*sides, []).tolist() == ["", "", ""]


def test_the_language_codes_are_those_of_the_model() -> None:
    texts = ["ahoj", "guten Tag", "你好", "привет", "สวัสดี", "xin chào", "", "12", "ħello"]
    labels = {label for text in texts for label in _model().predict(text, 400, 0.0)[0]}
    assert {label.removeprefix("__label__") for label in labels} <= set(LANGUAGES)
    assert len(set(LANGUAGES)) == len(LANGUAGES) == 176


def test_a_row_does_not_depend_on_the_others() -> None:
    texts = pa.array(["Dva psi běží po trávě.", "", "Two dogs run.", "Ein Hund\nläuft.", "Pes."])
    together = may_be(texts, "cs")
    assert together.tolist() == [may_be(texts[i : i + 1], "cs")[0] for i in range(len(texts))]
    assert together.tolist()[:3] == [True, False, False]
    assert may_be(texts, "de").tolist()[3]


def test_broken_lines_among_multi30k(data: Path) -> None:
    lines = add_noise(read_sides(data / "multi30k")[:6000], share=0.1, seed=1)
    assert lines == add_noise(read_sides(data / "multi30k")[:6000], share=0.1, seed=1)
    kinds = np.array([line.kind for line in lines])
    assert set(kinds) == {"", *KINDS}
    source, reference = (pa.array([line[side] for line in lines]) for side in (0, 1))
    rejected = reasons(source, reference, [parse_condition(text) for text in CONDITIONS]) != ""
    assert rejected[kinds != ""].mean() >= 0.9
    assert rejected[kinds == ""].mean() <= 0.02


@pytest.mark.parametrize("text", ["source_language = xx", "reference_language != czech"])
def test_an_unknown_language_names_similar_ones(text: str) -> None:
    with pytest.raises(ValueError, match="no language code that the identifier knows; similar are"):
        parse_condition(text)


@pytest.mark.parametrize("code", ["ces", "cz", "CS"])
def test_another_code_of_a_known_language_names_the_known_one(code: str) -> None:
    with pytest.raises(ValueError, match="knows; write cs"):
        parse_condition(f"source_language = {code}")
