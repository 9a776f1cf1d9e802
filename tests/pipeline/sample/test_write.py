"""What write_sample puts on disk."""

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter

import pytest

from models.errors import UserError
from models.files import digest
from pipeline.sample import corpus, noise, write_sample
from pipeline.sample.frames.travel import LEAVING


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "sample"
    return folder, write_sample(folder, pairs=8_000, seed=1)


@pytest.fixture(scope="module")
def rows(sample):
    """Every line of the corpus as bytes, split at its tabs."""
    files = sorted((sample[0] / "czeng16").glob("*.gz"))
    assert len(files) == 3
    lines = b"".join(gzip.decompress(path.read_bytes()) for path in files).split(b"\n")[:-1]
    return [line.split(b"\t") for line in lines]


@pytest.fixture(scope="module")
def sound(rows):
    """(id, score, Czech, English) of the rows that hold what they should, the first of an id."""
    found = {}
    for cells in rows:
        try:
            texts = [cell.decode() for cell in cells]
        except UnicodeDecodeError:
            continue
        bad = len(texts) != 4 or not all(text.strip() for text in texts)
        if not bad and len(texts[2]) < 2_000 and not re.search("[\x00-\x1f\x7f-\x9f]", texts[3]):
            found.setdefault(texts[0], texts)
    return list(found.values())


def test_the_same_bytes_in_another_process(tmp_path):
    code = "import sys; from pathlib import Path; from pipeline.sample import write_sample; "
    code += "write_sample(Path(sys.argv[1]), pairs=200, seed=2)"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, tmp_path / seed], check=True, env=environment)
    assert digest(tmp_path / "1") == digest(tmp_path / "2")
    write_sample(tmp_path / "other", pairs=200, seed=3)
    assert digest(tmp_path / "other") != digest(tmp_path / "1")


def test_writing_again_replaces_a_sample(tmp_path):
    first = write_sample(tmp_path / "s", pairs=50)
    before = digest(tmp_path / "s")
    assert write_sample(tmp_path / "s", pairs=50) == first
    assert digest(tmp_path / "s") == before
    assert [p.name for p in tmp_path.iterdir()] == ["s"]


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="holds other files"):
        write_sample(tmp_path, pairs=10)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_no_pairs_or_too_many(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="pairs"):
        write_sample(tmp_path / "s", pairs=0)
    monkeypatch.setattr(corpus, "FRAMES", [LEAVING])
    monkeypatch.setattr(corpus, "WEIGHTS", [1])
    with pytest.raises(UserError, match=r"sample\.pairs: .* no more than about \d"):
        write_sample(tmp_path / "s", pairs=10_000)
    assert not (tmp_path / "s").exists()


def test_counts_by_kind_are_true(sample, rows, sound):
    folder, counts = sample
    assert counts == json.loads((folder / "sample.json").read_text("utf-8"))
    assert counts["rows"] == len(rows)
    rejected = Counter()
    seen = set()
    for cells in rows:
        if len(cells) != 4:
            rejected["too few columns" if len(cells) < 4 else "too many columns"] += 1
            continue
        try:
            name, _, czech, english = (cell.decode() for cell in cells)
        except UnicodeDecodeError:
            rejected["invalid utf-8"] += 1
            continue
        kinds = {
            "empty czech": not czech.strip(),
            "empty english": not english.strip(),
            "control character": bool(re.search("[\x00-\x1f\x7f-\x9f]", czech + english)),
            "too long": len(czech) > 2_000,
            "duplicate id": name in seen,
        }
        seen.add(name)
        rejected.update([kind for kind, holds in kinds.items() if holds])
    assert rejected == counts["rejected"]
    assert rejected.keys() == set(noise.REJECTED)

    accepted = Counter()
    for _, _, czech, english in sound:
        if czech == english:
            accepted["numbers" if re.fullmatch(r"[\d ]+", czech) else "untranslated"] += 1
        elif re.search(r"\d", english):
            accepted["boilerplate"] += 1
    accepted["misaligned"] = len(sound) - counts["pairs"] - accepted.total()
    assert accepted == counts["accepted"]
    bad = sum(counts["rejected"].values()) + sum(counts["accepted"].values())
    assert counts["pairs"] + bad == counts["rows"]
    assert 0.01 <= bad / counts["rows"] <= 0.02


def test_enough_distinct_pairs_and_wordings(sound):
    pairs = {(czech, english) for _, _, czech, english in sound}
    assert len(pairs) >= 8_000
    english_of: dict[str, set[str]] = {}
    for czech, english in pairs:
        english_of.setdefault(czech, set()).add(english)
    assert sum(len(wordings) > 1 for wordings in english_of.values()) > 200


def test_ids_look_like_czeng_s(sound):
    pattern = re.compile(r"[a-zA-Z]+-b\d-0[0-2]train-f\d{6}-s\d+")
    assert all(pattern.fullmatch(name) for name, *_ in sound)
    assert all(0 < float(score) <= 1 for _, score, *_ in sound)


def test_sentences_are_whole(sound):
    for _, _, czech, english in sound:
        for text in (czech, english):
            assert not re.search(r"[{}|~_]|None|  |\s[.,?!]", text), text
            assert not re.search(r"\b(\w+) \1\b", text) or re.search(r"\d", text), text
        if czech != english and not re.search(r"\d", czech):
            assert czech[0].isupper() and czech[-1] in ".?"
            assert english[0].isupper() and english[-1] in ".?"
            assert 1 <= len(czech.split()) <= 20


def test_a_and_an(sound):
    for *_, english in sound:
        for article, word in re.findall(r"\b([Aa]n?) (\w+)", english):
            vowel = word[0].lower() in "aeiou" and not word.startswith(("uni", "use"))
            vowel |= word == "hour"
            assert (article.lower() == "an") == vowel, english


def test_every_word_of_the_corpus_is_in_the_phrases(sample, sound):
    lines = (sample[0] / "phrases.tsv").read_text("utf-8").splitlines()
    assert len(lines) == sample[1]["phrases"] >= 3_000
    pairs = [line.split("\t") for line in lines]
    assert all(len(pair) == 2 and pair[0] != pair[1] for pair in pairs)
    known = {word for pair in pairs for phrase in pair for word in phrase.split()}
    words = Counter(
        word
        for _, _, czech, english in sound
        if czech != english and not re.search(r"\d", english)
        for word in re.sub(r"[.,?]", " ", english.lower()).split()
    )
    missing = {word: n for word, n in words.items() if word not in known and n > 2}
    assert len(missing) <= len(words) // 100, missing


def test_similarity_sets_are_disjoint_and_new(sample, sound):
    texts = {}
    for path in (sample[0] / "similarity" / "sample").glob("*.tsv"):
        rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        assert len(rows) == sample[1]["similarity"][path.stem] >= 250
        assert all(0 <= float(score) <= 5 for score, *_ in rows)
        texts[path.stem] = {text for _, *pair in rows for text in pair}
    assert texts.keys() == {"development", "test"}
    assert not texts["development"] & texts["test"]
    assert not (texts["development"] | texts["test"]) & {english for *_, english in sound}
