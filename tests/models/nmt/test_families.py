"""Models from the Hub give what Transformers gives; bad folders end in one line, without code."""

import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from paraloom.models.errors import UserError
from paraloom.models.nmt import NmtOptions, Translator, engine
from paraloom.models.nmt.families import open_model, pretrained
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.families.pretrained import PretrainedModel
from paraloom.models.nmt.families.table import prompt
from paraloom.models.nmt.options import SamplingOptions
from tests.hub_folders import LONGEST, NAMES, expected_of, write_json
from tests.run_helpers import HubModel, Patch, refuses

from .conftest import CZECH, SHORT, Malicious, translator


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
    with pytest.raises(UserError, match="log p differs from torch's"):
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
        ("m2m100", ("cz", "en"), "input.source_language: .* no language 'cz'; did you mean cs"),
        ("nllb", ("ces_Cyrl", "en"), "no language 'ces_Cyrl'; did you mean ces_Latn"),
        ("mbart25", ("sk", "en"), "input.source_language: the model has no language 'sk'"),
        ("mbart50", ("cs", "English"), "input.target_language: .* no language 'English'"),
        ("t5", ("de", "en"), "has translation_cs_to_en, but no translation_de_to_en; add it"),
        ("mt5", (None, None), r"config\.json: .* but no translation_\?_to_\?; add it"),
    ],
)
def test_a_language_that_the_model_does_not_have(
    hub_model: HubModel, family: str, languages: tuple[str, str], message: str
) -> None:
    with refuses(message):
        open_model(hub_model(family), Languages(*languages))


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
    chinese = {"task_specific_params": {"translation_zh_to_en": {"prefix": "from Chinese: "}}}
    assert prompt(chinese, Languages("zh-TW", "en")) == "from Chinese: "
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
        ({"candidates": 13}, "candidates: 13 translations of a source need a beam of 13 or more"),
    ):
        with pytest.raises(ValueError, match=said):
            NmtOptions.of(options)


SOURCES = ["Jan má rád sýr.", "Máš nová trička?"]


def load(folder: Path) -> None:
    """Read all that a folder has."""
    model = open_model(folder, CZECH)
    assert isinstance(model, PretrainedModel)
    model.subwords()
    model.network()


def refused(folder: Path, message: str, read: Callable[[Path], object] = load) -> None:
    with refuses(message):
        read(folder)


def weights_of(folder: Path) -> dict[str, Any]:
    return {**load_file(folder / "model.safetensors")}


def configure(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, **changes})


@pytest.mark.parametrize("form", ["zip", "tar", "pickle", "shards"])
def test_weights_that_hold_code_are_refused(
    copy: HubModel, tmp_path: Path, form: str, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # must not weaken us
    folder, trace = copy("marian"), tmp_path / "trace"
    weights = {**weights_of(folder), "extra": Malicious(trace)}
    (folder / "model.safetensors").unlink()
    path = folder / "pytorch_model.bin"
    if form == "pickle":
        path.write_bytes(pickle.dumps(weights["extra"]))
    elif form == "tar":
        content = pickle.dumps(weights["extra"])
        with tarfile.open(path, "w") as archive:
            for name in ("sys_info", "pickle", "storages", "tensors"):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    else:
        torch.save(weights, path)
    if form == "shards":
        shard = path.rename(folder / "pytorch_model-00001-of-00001.bin").name
        names = dict.fromkeys(weights, shard)
        write_json(folder / "pytorch_model.bin.index.json", {"metadata": {}, "weight_map": names})
    refused(folder, "the weights cannot be read: they are damaged, or contain code")
    refused(folder, "the weights cannot be read: they are damaged, or contain code", translator)
    assert not trace.exists()


def test_pickled_weights_and_weights_in_shards_load_too(copy: HubModel) -> None:
    folder = copy("marian")
    before, _ = translator(folder).translate(SOURCES)
    weights = weights_of(folder)
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert translator(folder).translate(SOURCES)[0].equals(before)
    (folder / "pytorch_model.bin").unlink()
    shards = {name: f"model-{1 + at % 2}.safetensors" for at, name in enumerate(weights)}
    for shard in set(shards.values()):
        part = {name: weights[name] for name in weights if shards[name] == shard}
        save_file(part, folder / shard, metadata={"format": "pt"})
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": shards})
    assert translator(folder).translate(SOURCES)[0].equals(before)
    (folder / shard).unlink()
    refused(folder, "the weights cannot be read")


def test_weights_outside_the_folder_are_refused(copy: HubModel) -> None:
    """They are not in the digest of the model."""
    folder = copy("marian")
    names = dict.fromkeys(weights_of(folder), "../model.safetensors")
    (folder / "model.safetensors").rename(folder.parent / "model.safetensors")
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": names})
    refused(folder, r"index\.json: names a file outside its folder")


def test_weights_that_are_not_numbers_are_refused(copy: HubModel) -> None:
    folder = copy("marian")
    weights = weights_of(folder)
    weights["model.encoder.layers.0.fc1.bias"][:] = torch.nan  # which no ReLU hides
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    refused(folder, r"log p differs from torch's by nan per subword", translator)


def test_code_of_a_model_is_never_run(copy: HubModel, tmp_path: Path) -> None:
    folder, trace = copy("marian"), tmp_path / "trace"
    (folder / "evil.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    own = {"AutoConfig": "evil.C", "AutoModelForSeq2SeqLM": "evil.M", "AutoTokenizer": ["evil.T"]}
    configure(folder, auto_map=own)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    write_json(folder / "tokenizer_config.json", {**settings, "auto_map": own})
    load(folder)
    assert not trace.exists()
    configure(folder, _attn_implementation="owner/kernel")
    refused(folder, r"config\.json: .* third-party code \(owner/kernel\)")


@pytest.mark.parametrize(
    ("family", "file", "content", "message"),
    [
        ("marian", "config.json", '{"model_type": "bert"}', "unknown model_type 'bert'"),
        ("marian", "source.spm", "x", "source.spm: not a SentencePiece model"),
        ("marian", "vocab.json", '{"a": 0, "b": 0}', "each token an id of its own"),
        ("marian", "target.spm", None, r"target\.spm: is missing from the model folder"),
        ("marian", "model.safetensors", None, r"its weights are missing \(model\.safetensors\)"),
        ("nllb", "sentencepiece.bpe.model", None, r"missing .*sentencepiece\.bpe\.model or"),
        ("mbart50", "tokenizer.json", "{}", "not a tokenizer.json"),
    ],
)
def test_bad_files_are_named_in_one_line(
    copy: HubModel, family: str, file: str, content: str | None, message: str
) -> None:
    folder = copy(family)
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(content)
    refused(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 10**9}, "does not fit the tokeniser .* 1,000,000,000 embeddings for"),
        ({"vocab_size": 900}, "does not fit the tokeniser .* 900 embeddings for 545 tokens"),
        ({"encoder_layers": 10**9}, "encoder_layers must be at most 1,000"),
        ({"encoder_layers": 30, "encoder_ffn_dim": 1 << 16}, "settings describe .* files have"),
        ({"d_model": 64}, "the weights "),
        ({"decoder_start_token_id": 10**6}, "does not fit the tokeniser .*IndexError"),
    ],
)
def test_sizes_take_no_memory(copy: HubModel, changes: dict[str, int], message: str) -> None:
    folder = copy("marian")
    configure(folder, **changes)
    refused(folder, message)
