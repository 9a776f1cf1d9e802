"""Marian's models beside Marian (`pymarian`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from paraloom.models.nmt import NmtOptions, Translator
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.marian import MarianModel
from tests.hub_models import pairs
from tests.marian_models import make

pymarian: Any = pytest.importorskip("pymarian")

SIZES = {"d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
STEPS = 1200


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A model in a form, which knows the sentences that it was trained on."""
    made: dict[str, Path] = {}

    def get(form: str) -> Path:
        if form not in made:
            torch.set_num_threads(1)
            made[form] = tmp_path_factory.mktemp("marian") / form
            make(made[form], form, STEPS, **SIZES)
        return made[form]

    return get


@pytest.mark.parametrize("beam", [1, 4, 12])
@pytest.mark.parametrize("form", ["spm", "opus"])
def test_translations_are_those_of_marian(
    trained: Callable[[str], Path], form: str, beam: int
) -> None:
    sources = [source for source, _ in pairs()[:100]]
    languages = Languages("cs", "en")
    ours = Translator(trained(form), NmtOptions(beam=beam), languages=languages, threads=1)
    model = ours._model
    assert isinstance(model, MarianModel)
    names = [str(model._vocabularies[side]) for side in (0, -1)]
    # Without its limit of three times the source, at which Marian cuts.
    marian = pymarian.Translator(
        models=str(model.weights), vocabs=names, beam_size=beam, normalize=1.0, n_best=True,
        cpu_threads=1, quiet=True, quiet_translation=True, workspace=500, max_length=1000,
        max_length_factor=20,
    )  # fmt: skip
    given = sources
    if form == "opus":  # which Marian gets in subwords
        given = [" ".join(model.layout.source(of)) for of in ours._sources(sources)]
    best: dict[int, tuple[str, float]] = {}
    for line in "\n".join(marian.translate(given)).splitlines():
        number, text, _, score = line.split(" ||| ")
        best.setdefault(int(number), (text.strip(), float(score)))
    rows = ours.translate(sources)[0].to_pylist()
    equal = 0
    for row, (text, score) in zip(rows, (best[n] for n in range(len(rows))), strict=True):
        if form == "opus":
            text = ours._subwords.decode(text.split())
        if row["translation"] == text:
            equal += 1
            assert row["translation_score"] == pytest.approx(score, abs=1e-3)
    assert equal >= 0.98 * len(sources)
