"""Scorers in files of one's own, and scores that were computed elsewhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paraloom
from paraloom.models.errors import UserError
from paraloom.models.files import digest
from paraloom.models.hashing import text_hashes
from paraloom.models.scorers import PairScorer, columns
from paraloom.models.scorers.columns import MISSING, SEVERAL, find, store
from paraloom.models.scorers.plugins import FileScorer, source_of
from tests.run_helpers import Patch, refuses

HEAD = """
import numpy as np
from paraloom.models.scorers import Resource, Scorer

def commas(pairs):
    return np.array([text.count(",") for text in pairs.translation_text.to_pylist()], np.float32)

"""
TEXTS = pa.array(["a, b", "c", "d,, e"])


def scorer(folder: Path, code: str, **resources: Any) -> PairScorer:
    path = folder / "mine.py"
    path.write_text(HEAD + code, encoding="utf-8-sig")  # as some editors write it
    source = source_of(f"{path}:commas_score")
    return PairScorer(["commas_score", "unigram_f1"], sources=[source], **resources)


def entry(arguments: str) -> str:
    return f"commas_score = Scorer(meaning='commas', unit='commas', {arguments})"


def test_a_file_brings_a_scorer(tmp_path: Path) -> None:
    made = scorer(tmp_path, entry("function=commas, range=(0, None)"))
    found = made.score(TEXTS, TEXTS)
    assert found["commas_score"].dtype == np.float32
    assert found["commas_score"].tolist() == [1, 0, 2]
    assert found["unigram_f1"].tolist() == [1, 1, 1]
    other = "function=lambda pairs: [[1.5, None, 2.0], 1 / len(pairs)][0], range=(0, None)"
    made = scorer(tmp_path, entry(other))  # no array, and fails for no rows
    np.testing.assert_array_equal(made.score(TEXTS, TEXTS)["commas_score"], [1.5, np.nan, 2])
    assert made.score(TEXTS[:0], TEXTS[:0])["commas_score"].shape == (0,)


def test_a_scorer_reads_what_it_declares(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr("paraloom.models.scorers.pair_scorer._ROWS", 1000)  # it gets the whole
    code = """
def joined(pairs, table):
    assert len(pairs) == 5000, len(pairs)
    found = zip(pairs.source_text.to_pylist(), pairs.ids.to_pylist())
    return np.array([table[a] + len(b) for a, b in found], np.float32)

""" + entry(
        "function=joined, range=(None, None), whole_shard=True, reads=('source', 'id'), "
        "resource=Resource(name='table', open=lambda path: eval(path.read_text()), remedy='it')"
    )
    path = tmp_path / "table"
    path.write_text("{'x': 1, 'y': 20}")
    texts, ids = pa.array(["a"] * 5000), pa.array(["i", "ii"] * 2500)
    sources = pa.array(["x", "y"] * 2500)
    found = scorer(tmp_path, code, table=path).score(texts, texts, sources, ids)
    assert found["commas_score"].tolist() == [2, 22] * 2500
    for columns_given, lacking in (((), "source"), ((sources,), "id")):
        with pytest.raises(UserError, match=f"commas_score: the pairs have no {lacking}$"):
            scorer(tmp_path, code, table=path).score(texts, texts, *columns_given)
    with pytest.raises(UserError, match="commas_score needs it"):
        scorer(tmp_path, code)


def test_reasons_are_those_of_their_rows(tmp_path: Path, monkeypatch: Patch) -> None:
    """Also where a block has none."""
    monkeypatch.setattr("paraloom.models.scorers.pair_scorer._ROWS", 2)
    code = """
from paraloom.models.scorers import Outcome

def known(pairs):
    values = commas(pairs)
    without = np.where(values == 0, "no comma", "").astype(object)
    return Outcome(values, without if (values == 0).any() else None)

""" + entry("function=known, range=(0, None)")
    texts = pa.array(["a,", "b,,", "c,", "d", "e,"])
    found = scorer(tmp_path, code).score(texts, texts)
    assert found["commas_score"].tolist() == [1, 2, 1, 0, 1]
    assert {name: of.tolist() for name, of in found.reasons.items()} == {
        "commas_score": ["", "", "", "no comma", ""]
    }
    assert not scorer(tmp_path, code).score(texts[:3], texts[:3]).reasons


def test_rounding_beyond_the_range_is_clipped(tmp_path: Path) -> None:
    values = "np.array([1.000001, -0.000001, 1.0001], np.float32)"
    code = entry(f"function=lambda pairs: {values}")
    found = scorer(tmp_path, code).score(TEXTS, TEXTS)["commas_score"]
    np.testing.assert_allclose(found, [1, 0, 1.0001], atol=1e-7)
    assert found[:2].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", r"mine\.py:commas_score \(AttributeError: .* no attribute 'commas_score'"),
        ("raise SystemExit", r"mine.py:commas_score: .*mine\.py, line 8 \(SystemExit"),
        (entry("unknown=3"), r"mine\.py, line 8 \(TypeError"),
        ("x = (1", r"mine\.py, line 8 \(SyntaxError"),
        (
            entry("function=lambda pairs: 1 / 0"),
            r"commas_score: the scorer failed: .*mine\.py, line 8 \(ZeroDivision",
        ),
        (entry("function=lambda pairs: np.ones((3, 1))"), r"of shape \[3, 1\] for 3 pairs"),
        (entry("function=lambda pairs: ['a', 'b', 'c']"), "could not convert string to float"),
        (  # the tokens are those of other scorers, too
            entry("function=lambda pairs: pairs.reference.lengths.fill(0)"),
            r"the scorer failed: .*mine\.py, line 8 \(ValueError",
        ),
    ],
)
def test_what_fails_is_one_line(code: str, message: str, tmp_path: Path) -> None:
    with refuses(message):
        scorer(tmp_path, code).score(TEXTS, TEXTS)


def test_a_package_beside_paraloom_is_no_part_of_it() -> None:
    folder = Path(paraloom.__file__).parent
    with refuses(rf"{folder}_comet/mine\.py, line 1 \(ZeroDivisionError"):
        FileScorer("x", f"{folder}_comet/mine.py", "1 / 0").load()


def test_the_key_of_a_file_is_its_text(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    keys = []
    for text in ("x = 1", "x = 2", "x = 1"):
        path.write_text(text)
        keys.append(source_of(f"{path}:x").key())
    assert keys[0] == keys[2] != keys[1]
    with pytest.raises(UserError, match=r"none\.py: cannot be read \(No such file"):
        source_of(f"{tmp_path}/none.py:name")


IDS = st.text("abcč .:0", min_size=1, max_size=4)
VALUES = st.floats(width=32, allow_nan=True)
ROWS = st.lists(st.tuples(IDS, VALUES), max_size=40)


def stored(folder: Path, rows: list[tuple[str, float]], block: int = 7) -> int:
    def blocks() -> Iterator[tuple[pa.Array, np.ndarray]]:
        for start in range(0, len(rows), block):
            ids, values = zip(*rows[start : start + block], strict=True)
            yield pa.array(ids, pa.string()), np.array(values, np.float32)

    return store(folder, blocks())


def joined(rows: list[tuple[str, float]], asked: list[str]) -> list[tuple[float, str]]:
    """The join written out."""
    values: dict[str, list[float]] = {}
    for key, value in rows:
        values.setdefault(key, []).append(value)
    reasons = (MISSING, "", SEVERAL)
    found = [values.get(key, []) for key in asked]
    return [(v[0] if len(v) == 1 else np.nan, reasons[min(len(v), 2)]) for v in found]


@given(rows=ROWS, asked=st.lists(IDS, max_size=40))
@settings(max_examples=20)
@pytest.mark.parametrize("bits", [64, 2], ids=["", "hashes that meet"])
def test_equal_to_a_dictionary(
    tmp_path_factory: pytest.TempPathFactory,
    bits: int,
    rows: list[tuple[str, float]],
    asked: list[str],
) -> None:
    def few(texts: pa.Array, seed: int = 0) -> np.ndarray:
        whole = text_hashes(texts, seed)
        return whole if seed else whole >> np.uint64(64 - bits) << np.uint64(64 - bits)

    folder = tmp_path_factory.mktemp("columns")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "text_hashes", few)
        assert stored(folder / "c", rows) == len(rows)
        values, reasons = find(folder / "c", pa.array(asked, pa.string()))
    wanted = joined(rows, asked)
    assert reasons is not None
    assert [*reasons] == [reason for _, reason in wanted]
    np.testing.assert_array_equal(values, np.array([value for value, _ in wanted], np.float32))


def test_the_files_depend_on_the_rows_not_on_their_order(tmp_path: Path) -> None:
    rows = [(f"id-{i % 500}", float(i)) for i in range(600)]
    stored(tmp_path / "a", rows)
    stored(tmp_path / "b", rows[::-1], block=100)
    stored(tmp_path / "c", [*rows[1:], ("id-0", -1.0)])
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")
