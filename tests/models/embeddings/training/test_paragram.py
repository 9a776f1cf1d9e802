import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from paraloom.models.embeddings.datasets.phrases import read_phrases
from paraloom.models.embeddings.options import ParagramOptions
from paraloom.models.embeddings.training.paragram import train_paragram
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import read_vectors

TEXT = {
    "ppdb": "[NP] ||| the car ||| the automobile ||| PPDB2.0Score=5 ||| 0-0 1-1 ||| Equivalence\n",
    "ppdb without label": "the car ||| the automobile\n",
    "tsv": "the car\tthe automobile\t0.9\n",
}


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_formats(tmp_path: Path, text: str, pack: Callable[[bytes], bytes], encoding: str) -> None:
    path = tmp_path / "phrases"
    path.write_bytes(pack(text.encode(encoding)))
    assert list(read_phrases(path)) == [("the car", "the automobile")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a ||| b\nc ||| \n", "line 2 holds no pair"),
        (b"a\tb\nc\n", "line 2 holds no pair"),
        (b"a b\n\xff c\n", "row 2: not UTF-8"),
        (b"", "empty"),
        (gzip.compress(b"a b\n" * 1000, mtime=0)[:-9], "truncated or corrupt gzip"),
        (None, "cannot be read"),
    ],
)
def test_bad_phrases_name_file_and_row(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "phrases"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        list(read_phrases(path))
    assert str(path) in str(error.value)


def test_paraphrases_end_up_near_each_other(tmp_path: Path) -> None:
    names = [f"w{i}" for i in np.random.default_rng(0).permutation(120)]
    pairs = list(zip(names[:60], names[60:], strict=True))  # unlike the order of the vocabulary
    path, out = tmp_path / "phrases", tmp_path / "vectors.txt"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    options = ParagramOptions(dim=16, epochs=60, batch_size=10, learning_rate=0.01)
    metrics = train_paragram(path, out, options, seed=1)
    assert (metrics["pairs"], metrics["words"], metrics["steps"]) == (60, 120, 360)
    vectors = read_vectors(out)
    rows = [vectors.rows([pair[side] for pair in pairs]) for side in (0, 1)]
    assert min(map(min, rows)) >= 0
    a, b = (vectors.matrix[r] / np.linalg.norm(vectors.matrix[r], axis=1)[:, None] for r in rows)
    cosines = a @ b.T
    others = cosines[~np.eye(60, dtype=bool)].reshape(60, 59).max(axis=1)
    assert np.mean(np.diag(cosines) > others) > 0.95


def test_the_options_are_those_of_the_paper() -> None:
    """Negatives are of the other side; words of no other training start a training."""
    options = ParagramOptions(dim=4, epochs=2, batch_size=3, learning_rate=0.5)
    found = options.training()
    assert (found.model, found.negatives, found.initial_vectors) == ("word-avg", "other", None)
    for name, value in options.model_dump().items():
        assert getattr(found, name) == value
