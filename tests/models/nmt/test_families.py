"""Models from the Hub give what Transformers gives."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from paraloom.models.errors import UserError
from paraloom.models.nmt import NmtOptions, Translator, engine
from paraloom.models.nmt.families import open_model, pretrained
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.pretrained import PretrainedModel
from paraloom.models.nmt.options import SamplingOptions
from tests.hub_folders import LONGEST, NAMES, expected_of, write_json
from tests.run_helpers import HubModel, Patch

from .conftest import CZECH, SHORT, translator


@pytest.mark.parametrize("family", NAMES)
def test_translations_and_scores_are_those_of_transformers(
    hub_model: HubModel, family: str, monkeypatch: Patch
) -> None:
    folder = hub_model(family)
    expected = expected_of(folder)
    monkeypatch.setattr(engine, "longest_translation", lambda subwords: LONGEST)  # as there
    found = translator(folder)
    made = found._engine.submit(found._sources([row.source for row in expected]), 12)()
    same = lists = 0
    for row, hypotheses in zip(expected, made, strict=True):
        assert len(hypotheses) == 12
        best = hypotheses[0]
        lists += [made.pieces for made in hypotheses] == row.hypotheses
        # Of two that are equally probable, engines take either, by how a processor rounds.
        equal = best.pieces == row.hypotheses[0]
        same += equal or best.score == pytest.approx(row.score, abs=1e-5)
        if equal:
            assert best.ended == row.ended
            if best.ended:
                assert best.score == pytest.approx(row.score, abs=1e-3)
                assert best.subwords == len(best.pieces) + 1
    assert same >= 0.99 * len(expected)
    assert lists >= 0.9 * len(expected)
    # Trained for a second, it may say little; but not the same 12 of every source.
    assert len({tuple(said) for row in expected for said in row.hypotheses}) > 12

    sources = [*(row.source for row in expected), "", "Slovo " * 100]
    references = [*(row.reference for row in expected), "A dog.", "A dog."]
    scores = found.score(sources, references)
    assert scores.dtype == np.float32
    assert np.isnan(scores[-2:]).all()
    rows = ~np.isnan(scores[:-2])
    assert rows.mean() > 0.9
    truth = np.array([row.reference_score for row in expected])
    np.testing.assert_allclose(scores[:-2][rows], truth[rows], atol=1e-4)


def test_tags_are_no_repetition(hub_model: HubModel) -> None:
    """Nor is the end of sentence with which this decoder starts."""
    folder = hub_model("m2m100")
    sources = [row.source for row in expected_of(folder)[:16]]
    found = Translator(folder, SHORT.replace(no_repeat_ngram=1), languages=CZECH, threads=1)
    pieces = found._sources(sources)
    made = [best for (best,) in found._engine.submit(pieces)()]
    assert all(len({*best.pieces}) == len(best.pieces) for best in made)
    own = found._engine.score(pieces, [best.pieces for best in made])
    rows, _ = found.translate(sources)
    for row, best, score in zip(rows.to_pylist(), made, own, strict=True):
        if best.ended and row["reason"] is None:
            assert row["translation_score"] == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize("family", ["marian", "m2m100"])
def test_sampling_repeats_for_a_seed(hub_model: HubModel, family: str) -> None:
    folder = hub_model(family)
    options = SHORT.replace(sampling=SamplingOptions(top_k=8, temperature=0.8))
    found = Translator(folder, options, languages=CZECH, threads=1)
    sources = found._sources([row.source for row in expected_of(folder)[:16]])

    def draw(seed: int) -> list[list[tuple[list[str], float]]]:
        with found._engine.sampler(seed, 8) as submit:
            made = [row for at in (0, 8) for row in submit(sources[at : at + 8], 3)()]
        for source, hypotheses in zip(sources, made, strict=True):
            assert [h.score for h in hypotheses] == sorted(h.score for h in hypotheses)[::-1]
            for drawn in hypotheses:
                if drawn.ended:
                    (score,) = found._engine.score([source], [drawn.pieces])
                    assert drawn.score == pytest.approx(score, abs=1e-4)
        return [[(h.pieces, round(h.score, 4)) for h in hypotheses] for hypotheses in made]

    first = draw(1)
    found._engine.submit(sources)()  # work in between draws nothing
    assert draw(1) == first
    assert draw(2) != first


@pytest.mark.parametrize("family", ["madlad", "marian"])
def test_a_conversion_that_differs_is_refused(
    copy: HubModel, family: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Scaled logits in T5 1.1; a forgotten token, or position, elsewhere."""
    folder, cache = copy(family), tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    make_spec = PretrainedModel._spec
    if family == "madlad":
        monkeypatch.setattr(pretrained, "ALL_T5", ())  # its special case is left out
    else:

        def damaged(self: PretrainedModel, network: torch.nn.Module) -> object:
            spec = make_spec(self, network)
            spec.decoder.layer[0].ffn.linear_0.bias = torch.ones(64)
            return spec

        monkeypatch.setattr(PretrainedModel, "_spec", damaged)
    with pytest.raises(UserError, match="gives other probabilities than in torch"):
        translator(folder)
    assert not [path for path in cache.glob("paraloom/nmt/*") if path.is_dir()]


def test_a_marian_model_with_several_languages_wants_a_tag(copy: HubModel) -> None:
    folder = copy("marian")
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    *pieces, _, _, pad = vocabulary
    tokens = [*pieces, ">>deu<<", ">>fra<<", pad]
    write_json(folder / "vocab.json", {token: number for number, token in enumerate(tokens)})
    model = open_model(folder, Languages("cs", "de"))
    assert model.layout.source_prefix == (">>deu<<",)
    with pytest.raises(UserError, match=r"input.target_language: the model has no language 'pl'"):
        open_model(folder, Languages("cs", "pl"))


@pytest.mark.parametrize(
    ("family", "languages", "message"),
    [
        ("m2m100", ("cz", "en"), "input.source_language: .* no language 'cz'; near .* cs"),
        ("nllb", ("ces_Cyrl", "en"), "no language 'ces_Cyrl'; near ones are ces_Latn"),
        ("mbart25", ("sk", "en"), "input.source_language: the model has no language 'sk'"),
        ("mbart50", ("cs", "English"), "input.target_language: .* no language 'English'"),
        ("t5", ("de", "en"), "has translation_cs_to_en, but no translation_de_to_en; add it"),
        ("mt5", (None, None), r"config\.json: .* but no translation_\?_to_\?; add it"),
    ],
)
def test_a_language_that_the_model_does_not_have(
    hub_model: HubModel, family: str, languages: tuple[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        open_model(hub_model(family), Languages(*languages))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("family", "languages", "tags"),
    [
        ("nllb", ("ces", "en-GB"), ("ces_Latn", "eng_Latn")),
        ("nllb", ("cs", "zh-TW"), ("ces_Latn", "zho_Hant")),
        ("m2m100", ("cs_CZ", "pt-BR"), ("__cs__", "__pt__")),
        ("mbart50", ("CS", "zh"), ("cs_CZ", "zh_CN")),
    ],
)
def test_languages_are_found_as_users_write_them(
    hub_model: HubModel, family: str, languages: tuple[str, str], tags: tuple[str, str]
) -> None:
    layout = open_model(hub_model(family), Languages(*languages)).layout
    assert (*layout.source_prefix, *layout.target_prefix) == tags


def test_a_t5_without_tasks_has_no_prompt(copy: HubModel) -> None:
    folder = copy("mt5")
    assert open_model(folder, CZECH).layout.source_prefix
    config = json.loads((folder / "config.json").read_text())
    for tasks in ({}, None, {"summarization": {"prefix": "summarize: "}}):
        write_json(folder / "config.json", config | {"task_specific_params": tasks})
        assert open_model(folder, Languages()).layout.source(["X"]) == ["X", "</s>"]
    damaged: list[object] = [[1], {"translation_cs_to_en": {}}, {"translation_cs_to_en": "no"}]
    for given in damaged:
        write_json(folder / "config.json", config | {"task_specific_params": given})
        with pytest.raises(UserError, match=r"config\.json: does not fit"):
            open_model(folder, CZECH)


def test_nllb_as_it_was_first_released(copy: HubModel) -> None:
    folder = copy("nllb")
    settings = {"tokenizer_class": "NllbTokenizer", "legacy_behaviour": True}
    write_json(folder / "tokenizer_config.json", settings)
    layout = open_model(folder, CZECH).layout
    assert layout.source(["X"]) == ["X", "</s>", "ces_Latn"]


def test_options_that_do_not_fit_each_other() -> None:
    for options, said in (
        ({"device": "cpu", "compute_type": "float16"}, "compute_type: float16 needs a GPU"),
        ({"training": {"checkpoints": 9999}}, "checkpoints: must not be more than updates"),
        ({"candidates": 13}, "candidates: 13 translations of a source need a beam of as many"),
    ):
        with pytest.raises(ValueError, match=said):
            NmtOptions.of(options)
