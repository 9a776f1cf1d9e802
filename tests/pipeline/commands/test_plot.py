import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from paraloom.pipeline import cli
from paraloom.pipeline.commands.model.plot import components_plot, principal_components, unit_plot
from tests.run_helpers import Capsys, Patch
from tests.small_encoder import NUMBERED, small_encoder

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_encoder(NUMBERED).save(tmp_path / "model")
    return tmp_path / "model"


def run(monkeypatch: Patch, folder: Path, text: str, *arguments: str) -> tuple[int, Path]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    out = folder.parent / "plot.svg"
    code = cli.main(["plot", "--model", str(folder), "--out", str(out), *arguments])
    return code, out


def test_a_picture_from_lines(monkeypatch: Patch, folder: Path) -> None:
    text = "".join(f"w{i} & w{i + 1}\n" for i in range(29))
    code, out = run(monkeypatch, folder, text)
    assert code == 0
    root = ElementTree.parse(out).getroot()
    points = [c for c in root.iter(f"{SVG}circle") if c.get("class") == "point"]
    assert root.tag == f"{SVG}svg" and len(points) == 29
    code, out = run(monkeypatch, folder, text, "--unit", "3")
    assert code == 0
    named = [t.text for t in ElementTree.parse(out).getroot().iter(f"{SVG}text")]
    assert "w3 & w4" in named


@pytest.mark.parametrize("options", [[], ["--unit", "1"]])
def test_characters_that_xml_does_not_have(
    monkeypatch: Patch, folder: Path, options: list[str]
) -> None:
    code, out = run(monkeypatch, folder, "w1 \0\x1b[31m\uffff\nw2 😀 <é>\n", *options)
    assert code == 0
    shown = "".join(ElementTree.parse(out).getroot().itertext())
    assert "w1 \ufffd\ufffd[31m\ufffd" in shown and "w2 😀 <é>" in shown


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("w1\n", "0", "plot: 1 sentences are too few"),
        ("w1\nw2\n", "4", "plot: no unit 4, the model has units 0 to 3"),
    ],
)
def test_mistakes_are_one_line(
    monkeypatch: Patch, folder: Path, capsys: Capsys, text: str, unit: str, message: str
) -> None:
    code, out = run(monkeypatch, folder, text, "--unit", unit)
    assert code == 2 and not out.exists()
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_a_unit_orders_its_sentences() -> None:
    values = np.array([0.3, -0.5, 0.9])
    root = ElementTree.fromstring(unit_plot(["middle", "low", "high"], values, 7))
    dots = [float(c.get("cx", "")) for c in root.iter(f"{SVG}circle")]
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert dots == sorted(dots) and texts[-3:] == ["low", "middle", "high"]
    assert len(list(ElementTree.fromstring(unit_plot(["a"] * 100, np.arange(100.0), 0)))) < 100


def test_sentences_that_are_all_the_same() -> None:
    """They lie on one point within the picture."""
    for svg, axes in (
        (components_plot(["a", "a"], np.ones((2, 3), np.float32)), ("cx", "cy")),
        (unit_plot(["a", "a"], np.ones(2), 0), ("cx",)),
    ):
        assert "nan" not in svg.lower()
        root = ElementTree.fromstring(svg)
        sizes = dict(zip(("cx", "cy"), map(float, root.attrib["viewBox"].split()[2:]), strict=True))
        for axis in axes:
            (place,) = {float(dot.get(axis, "nan")) for dot in root.iter(f"{SVG}circle")}
            assert 0 < place < sizes[axis]


def test_components_are_those_of_the_covariance() -> None:
    random = np.random.default_rng(0)
    vectors = (random.normal(size=(200, 5)) * [5, 3, 1, 0.5, 0.1]) @ random.normal(size=(5, 5))
    found = principal_components(vectors)
    values, directions = np.linalg.eigh(np.cov(vectors.T))
    expected = (vectors - vectors.mean(0)) @ directions[:, ::-1][:, :2]
    assert np.abs(found.points) == pytest.approx(np.abs(expected), abs=1e-9)
    assert found.shares == pytest.approx(values[::-1][:2] / values.sum())
    assert principal_components(vectors[::-1]).points == pytest.approx(found.points[::-1])
