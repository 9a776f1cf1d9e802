"""Marian's models beside Marian (`pymarian`)."""

from pathlib import Path
from typing import Any

import pytest
import torch

from paraloom.models.nmt import NmtOptions, Translator
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.marian import MarianModel
from tests.hub_models import pairs
from tests.marian_models import as_opus, make

pymarian: Any = pytest.importorskip("pymarian")

SIZES = {"d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4}  # fmt: skip
STEPS = 800


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model in two forms, which knows the sentences that it was trained on."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("marian")
    make(folder / "spm", "spm", STEPS, **SIZES)
    return {"spm": folder / "spm", "opus": as_opus(folder / "spm", folder / "opus")}


@pytest.mark.parametrize("beam", [1, 4, 12])
@pytest.mark.parametrize("form", ["spm", "opus"])
def test_translations_are_those_of_marian(trained: dict[str, Path], form: str, beam: int) -> None:
    sources = [source for source, _ in pairs()[:100]]
    languages = Languages("cs", "en")
    ours = Translator(trained[form], NmtOptions(beam=beam), languages=languages, threads=1)
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
        number, said, _, of_line = line.split(" ||| ")
        best.setdefault(int(number), (said.strip(), float(of_line)))
    rows = ours.translate(sources)[0].to_pylist()
    equal = 0
    for row, (text, score) in zip(rows, (best[n] for n in range(len(rows))), strict=True):
        if form == "opus":
            text = ours._subwords.decode(text.split())
        if row["translation"] == text:
            equal += 1
            assert row["translation_score"] == pytest.approx(score, abs=1e-3)
    assert equal >= 0.98 * len(sources)
