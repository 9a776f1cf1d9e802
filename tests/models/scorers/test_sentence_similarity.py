"""Models of sentence-transformers, in torch and CTranslate2: small ones with random weights."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from paraloom.models.errors import UserError
from paraloom.models.memory import peak_memory
from paraloom.models.scorers import PairScorer, fast_networks
from paraloom.models.scorers.fast_networks import FastNetwork, parallel
from paraloom.models.scorers.learned.sentence_similarity import (
    encode,
    encode_on_gpu,
    open_cross_encoder,
    open_sentence_model,
)
from tests.models.nmt.conftest import Malicious
from tests.models.scorers import small_transformers
from tests.models.scorers.small_transformers import WORDS, write_bert, write_sentence_model
from tests.run_helpers import Patch, refuses

OWN = "sentence_bert_config.json"
BOUND = 1e-5  # of the influence of the batch, as `sentence_similarity` states it


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentence_model(tmp_path_factory.mktemp("model") / "sentences")


@pytest.fixture(scope="module")
def pair_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("model") / "pairs", labels=1)


def change(file: Path, **settings: Any) -> None:
    """Give other values to a file of settings."""
    values = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**values, **settings}))


def texts(rows: int, seed: int) -> pa.Array:
    rng = np.random.default_rng(seed)
    return pa.array([" ".join(rng.choice(WORDS[4:], rng.integers(1, 30))) for _ in range(rows)])


def test_sentence_similarity_is_the_cosine_of_the_vectors(sentence_model: Path) -> None:
    from sentence_transformers import SentenceTransformer

    first, second = texts(80, 1), texts(80, 2)
    scorer = PairScorer(["sentence_similarity"], sentence_model=sentence_model)
    similarity = scorer.score(first, second)["sentence_similarity"]
    model = SentenceTransformer(str(sentence_model), device="cpu")
    a, b = (model.encode(side.to_pylist()).astype(float) for side in (first, second))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert similarity.dtype == np.float32
    np.testing.assert_allclose(similarity, cosine, atol=BOUND)
    swapped = scorer.score(second, first)["sentence_similarity"]  # texts may be in other batches
    np.testing.assert_allclose(swapped, similarity, rtol=0, atol=BOUND)
    np.testing.assert_allclose(scorer.score(first, first)["sentence_similarity"], 1, atol=1e-6)
    found = scorer.score(pa.array(["", "a dog", " \t", "a"]), pa.array(["", "", "a", "a"]))
    np.testing.assert_allclose(found["sentence_similarity"], [0, 0, 0, 1], atol=1e-6)
    assert scorer.score(*[pa.array([], pa.string())] * 2)["sentence_similarity"].shape == (0,)


def test_the_way_on_gpus_gives_the_vectors_of_the_library(sentence_model: Path) -> None:
    """On a CPU, since this machine may have no GPU."""
    model = open_sentence_model(sentence_model)
    many = texts(2500, 6).to_pylist()
    empty: list[str] = []
    for some in (many, many[:1], empty):
        found, expected = encode_on_gpu(model, some), encode(model, some)
        assert len(found) == len(some)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=BOUND)


@pytest.mark.parametrize("name", ["sentence_similarity", "cross_encoder"])
def test_values_hardly_depend_on_batches(name: str, sentence_model: Path, pair_model: Path) -> None:
    scorer = PairScorer([name], sentence_model=sentence_model, cross_encoder_model=pair_model)
    first, second = texts(150, 3), texts(150, 4)
    whole = scorer.score(first, second)[name]
    assert whole.std() > 0.001
    order = np.random.default_rng(5).permutation(150)
    mixed = scorer.score(first.take(pa.array(order)), second.take(pa.array(order)))[name]
    np.testing.assert_allclose(mixed, whole[order], rtol=0, atol=BOUND)
    for size in (1, 7, 40):
        part = scorer.score(first[:size], second[:size])[name]
        np.testing.assert_allclose(part, whole[:size], rtol=0, atol=BOUND)


def test_each_distinct_text_and_pair_is_given_once_and_each_pair_has_its_own_score() -> None:
    """Texts of one pair in another make a pair of its own; blocks of other scorers do not count."""
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    pairs = [(a, b) for a in texts for b in texts]
    rows = [pairs[i] for i in np.random.default_rng(0).permutation(5000) % 25]
    seen: list[tuple[str, str]] = []
    encoded: list[str] = []

    def predict(pairs: list[tuple[str, str]], **_: Any) -> np.ndarray:
        seen.extend(pairs)
        return np.array([10 * len(a) + len(b) for a, b in pairs])

    def encode(texts: list[str], **_: Any) -> np.ndarray:
        encoded.extend(texts)
        return np.eye(5, dtype=np.float32)[[len(text) - 1 for text in texts]]

    cpu: dict[str, Any] = {"device": torch.device("cpu"), "num_labels": 1}
    models: dict[str, Any] = {
        "cross_encoder_model": SimpleNamespace(predict=predict, **cpu),
        "sentence_model": SimpleNamespace(encode=encode, **cpu),
    }
    columns = [pa.array(side) for side in zip(*rows, strict=True)]
    found = PairScorer(["cross_encoder", "sentence_similarity"], **models).score(*columns)
    assert found["cross_encoder"].tolist() == [10 * len(a) + len(b) for a, b in rows]
    assert found["sentence_similarity"].tolist() == [a == b for a, b in rows]
    assert (sorted(seen), sorted(encoded)) == (sorted(pairs), texts)


def test_entailment_in_both_directions(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = write_bert(tmp_path / "three", labels=3)
    names = {"0": "contradiction", "1": "neutral", "2": "ENTAILMENT"}
    change(folder / "config.json", id2label=names)
    first, second = texts(40, 5), texts(40, 6)
    scorer = PairScorer(["cross_encoder"], cross_encoder_model=folder)
    found = scorer.score(first, second)["cross_encoder"]
    model = CrossEncoder(str(folder), device="cpu")
    pairs = list(zip(first.to_pylist(), second.to_pylist(), strict=True))
    directions = pairs, [pair[::-1] for pair in pairs]
    both = [model.predict(of, apply_softmax=True)[:, 2] for of in directions]
    np.testing.assert_allclose(found, np.minimum(*both), atol=1e-5)
    assert np.abs(both[0] - both[1]).max() > 0.01
    swapped = scorer.score(second, first)["cross_encoder"]
    np.testing.assert_allclose(swapped, found, rtol=0, atol=BOUND)


def test_models_that_cannot_be_used(sentence_model: Path, pair_model: Path, tmp_path: Path) -> None:
    def fails(message: str, **models: Any) -> None:
        name = "sentence_similarity" if "sentence_model" in models else "cross_encoder"
        with refuses(message):
            PairScorer([name], **models)

    fails(
        "not a model of sentence-transformers: modules.json is missing", sentence_model=pair_model
    )
    fails("sentence-transformers: config.json is missing", cross_encoder_model=tmp_path)
    three = write_bert(tmp_path / "three", labels=3)
    fails("has the labels label_0, label_1, label_2; choose a", cross_encoder_model=three)
    (tmp_path / "broken").mkdir()
    for content in ("[{}]", "{"):
        (tmp_path / "broken" / "modules.json").write_text(content)
        fails("the model cannot be loaded", sentence_model=tmp_path / "broken")
    for folder, key in ((sentence_model, "sentence_model"), (pair_model, "cross_encoder_model")):
        copy = Path(shutil.copytree(folder, tmp_path / key))
        weights = copy / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:200])
        fails("the model cannot be loaded", **{key: copy})
        weights.unlink()
        fails("the model cannot be loaded", **{key: copy})


def test_what_fails_on_the_first_text_is_one_line(sentence_model: Path, tmp_path: Path) -> None:
    """Modules that do not fit; a tokenizer that panics at a token that it does not describe."""
    modules = json.loads((sentence_model / "modules.json").read_text())
    tokenizer = json.loads((sentence_model / "tokenizer.json").read_text())
    del tokenizer["post_processor"]["special_tokens"]["[SEP]"]
    files = {"modules.json": (modules[1:], ""), "tokenizer.json": (tokenizer, "PanicException")}
    for file, (values, said) in files.items():
        folder = Path(shutil.copytree(sentence_model, tmp_path / file))
        (folder / file).write_text(json.dumps(values))
        scorer = PairScorer(["sentence_similarity"], sentence_model=folder)
        with refuses(rf"^score\.sentence_model: the model fails \(.*{said}"):
            scorer.score(texts(2, 1), texts(2, 2))


def test_a_model_brings_no_code(sentence_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    ran = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(ran)!r}, 'w')")
    module = {"idx": 0, "name": "0", "path": ""}
    for name, key in (("evil.Module", "type"), ("os.abort", "type"), ("evil.Module", "t\\u0079pe")):
        text = json.dumps([{**module, "type": name}]).replace("type", key)
        (folder / "modules.json").write_text(text)
        with pytest.raises(UserError, match=rf"it needs third-party code \({name}\)"):
            open_sentence_model(folder)
    router = {**module, "type": "sentence_transformers.models.Router"}
    (folder / "modules.json").write_text(json.dumps([router]))
    (folder / "router_config.json").write_text(json.dumps({"types": {"a": "evil.Module"}}))
    with pytest.raises(UserError, match=r"router_config\.json: .* third-party code"):
        open_sentence_model(folder)
    (folder / "modules.json").unlink()
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}, "num_labels": 1}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="the model cannot be loaded"):
        open_cross_encoder(folder)
    assert not ran.exists()


@pytest.mark.parametrize(
    ("file", "settings", "message"),
    [
        ("config.json", {"vocab_size": 300_000_000}, "its settings describe .* its files have"),
        ("config.json", {"num_hidden_layers": 20_000}, "num_hidden_layers must be at most 1,000"),
        (OWN, {"config_kwargs": {"num_hidden_layers": 20_000}}, f"{OWN}: num_hidden_layers must"),
        (OWN, {"config_kwargs": {"vocab_size": 3 * 10**8}}, f"{OWN}: .*: config_kwargs must not"),
    ],
)
def test_sizes_take_no_memory_on_the_word_of_a_file(
    sentence_model: Path, tmp_path: Path, file: str, settings: dict[str, Any], message: str
) -> None:
    folder = Path(shutil.copytree(sentence_model, tmp_path / "model"))
    change(folder / file, **settings)
    before = peak_memory()
    with refuses(message):
        open_sentence_model(folder)
    assert peak_memory() - before < 100 << 20


@pytest.mark.parametrize("groups", ["args", "kwargs"])
def test_a_model_does_not_set_how_it_is_loaded(
    sentence_model: Path, tmp_path: Path, groups: str
) -> None:
    """With `weights_only: false` the library unpickles the weights."""
    folder = Path(shutil.copytree(sentence_model, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save({**weights, "x": Malicious(tmp_path / "ran")}, folder / "pytorch_model.bin")
    config = json.loads((folder / "config.json").read_text())
    config.pop("dtype")
    (folder / "config.json").write_text(json.dumps(config))
    file = folder / OWN
    unsafe = {"weights_only": False, "use_safetensors": False, "dtype": "auto"}
    change(file, **{f"model_{groups}": unsafe})
    with pytest.raises(UserError, match=rf"model_{groups} must not set use_safetensors$"):
        open_sentence_model(folder)
    assert not (tmp_path / "ran").exists()
    harmless = {"attn_implementation": "eager"}
    change(file, **{f"model_{groups}": harmless})
    shutil.copy(sentence_model / "model.safetensors", folder)
    (folder / "pytorch_model.bin").unlink()
    assert open_sentence_model(folder).encode(["a dog"]).shape == (1, 32)


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("config.json", {"sbert_ce_default_activation_function": "torch.utils.collect_env.main"}),
        ("config.json", {"sentence_transformers": {"activation_fn": "torch.seed"}}),
        ("config_sentence_transformers.json", {"activation_fn": "torch.nn.functional.relu"}),
        ("config.json", {"_attn_implementation": "owner/kernel"}),
        ("config.json", {"attn_implementation": {"": "owner/kernel:function"}}),
        ("config.json", {"_attn_implementation_internal": "owner/kernel"}),
    ],
)
def test_settings_do_not_choose_code(
    pair_model: Path, tmp_path: Path, file: str, settings: dict[str, Any]
) -> None:
    folder = Path(shutil.copytree(pair_model, tmp_path / "model"))
    before = (folder / file).read_text() if (folder / file).exists() else "{}"
    change(folder / file, **settings)
    with pytest.raises(UserError, match=rf"{file}: .* it needs third-party code \("):
        open_cross_encoder(folder)
    (folder / file).write_text(before)
    default = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
    change(folder / file, **default)
    assert open_cross_encoder(folder).num_labels == 1


def test_a_model_is_in_its_folder(sentence_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sentence_model, tmp_path / "model"))
    (folder / "model.safetensors").rename(tmp_path / "weights.safetensors")
    index = folder / "model.safetensors.index.json"
    names = load_file(tmp_path / "weights.safetensors")

    def written(file: str) -> str:
        return json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, file)})

    index.write_text(written("../weights.safetensors"))
    with pytest.raises(UserError, match=r"index\.json: names a file outside its folder \(\.\./w"):
        open_sentence_model(folder)
    index.write_text(written("a.safetensors"))
    shutil.copy(tmp_path / "weights.safetensors", folder / "a.safetensors")
    assert open_sentence_model(folder).encode(["a dog"]).shape == (1, 32)
    (folder / "1_Pooling").rename(tmp_path / "pooling")
    (folder / "1_Pooling").symlink_to(tmp_path / "pooling")
    with pytest.raises(UserError, match="1_Pooling: a model must not contain a link to a folder"):
        open_sentence_model(folder)


def test_a_module_takes_no_memory_on_the_word_of_a_file(
    sentence_model: Path, tmp_path: Path
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense

    model = SentenceTransformer(str(sentence_model), device="cpu")
    model.append(Dense(32, 4))
    folder = tmp_path / "model"
    model.save(str(folder))
    assert open_sentence_model(folder).encode(["a dog"]).shape == (1, 4)
    path = folder / "2_Dense" / "config.json"
    path.write_text(path.read_text().replace("32", "320000000"))
    with pytest.raises(UserError, match=r"its settings describe .* its files have"):
        open_sentence_model(folder)


SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 64, "initializer_range": 0.2, "vocab_size": len(WORDS)}
SENTENCES = [" ".join(WORDS[4 : 4 + n % 9] * (1 + n % 4)) + " cat" * (n % 3) for n in range(90)]


def write(folder: Path, kind: str, pooling: str = "mean", **settings: Any) -> Path:
    """A model of sentence-transformers over a small network of a kind (`Bert`, …)."""
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Pooling, Transformer

    bert = write_bert(folder.with_name(f"{folder.name}.bert"))
    names = {"DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}}
    config = getattr(transformers, f"{kind}Config")(**(SIZES | names.get(kind, {}) | settings))
    torch.manual_seed(2)
    getattr(transformers, f"{kind}Model")(config).save_pretrained(bert)
    words = Transformer(str(bert))
    modules = [words, Pooling(32, pooling_mode=pooling), Dense(32, 8)]
    model = SentenceTransformer(modules=modules, device="cpu", prompts={"x": "the dog "})
    model.default_prompt_name = "x"
    model.save(str(folder))
    return folder


def library(folder: Path) -> np.ndarray:
    """Unit vectors of the sentences by the library."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model.encode(SENTENCES, normalize_embeddings=True)


@pytest.mark.parametrize(
    ("kind", "pooling", "settings"),
    [
        ("Bert", "mean", {}),
        ("Bert", "cls", {"hidden_act": "relu", "layer_norm_eps": 1e-5}),
        ("DistilBert", "max", {}),
        ("Roberta", "mean", {"pad_token_id": 1, "max_position_embeddings": 66}),
        ("XLMRoberta", "cls", {"pad_token_id": 1, "max_position_embeddings": 66}),
    ],
)
def test_vectors_are_those_of_the_library(
    tmp_path: Path, monkeypatch: Patch, kind: str, pooling: str, settings: dict[str, Any]
) -> None:
    if "pad_token_id" in settings:  # positions count from there on
        monkeypatch.setattr(small_transformers, "WORDS", ["[UNK]", "[PAD]", *WORDS[2:]])
    folder = write(tmp_path / "model", kind, pooling, **settings)
    model = open_sentence_model(folder)
    assert any(isinstance(module, FastNetwork) for module in model.modules())
    np.testing.assert_allclose(encode(model, SENTENCES), library(folder), rtol=0, atol=1e-5)


def test_values_do_not_depend_on_threads(tmp_path: Path) -> None:
    folder, before, found = write(tmp_path / "model", "Bert"), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            model = open_sentence_model(folder)
            assert parallel(model) == threads
            found.append(encode(model, SENTENCES))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_other_networks_stay_in_torch(tmp_path: Path, monkeypatch: Patch) -> None:
    """A kind, an activation that CTranslate2 lacks; a conversion that gives other values."""
    folders = [
        write(tmp_path / "mpnet", "MPNet", pad_token_id=0, max_position_embeddings=66),
        write(tmp_path / "activation", "Bert", hidden_act="mish"),
        write(tmp_path / "epsilon", "Bert", layer_norm_eps=0.3),
    ]
    load = fast_networks.FastNetwork.__init__

    def without_epsilon(self: Any, network: Any, compute_type: str) -> None:
        epsilon, network.config.layer_norm_eps = network.config.layer_norm_eps, 1e-12
        load(self, network, compute_type)
        network.config.layer_norm_eps = epsilon

    monkeypatch.setattr(fast_networks.FastNetwork, "__init__", without_epsilon)
    for folder in folders:
        model = open_sentence_model(folder)
        assert parallel(model) == 0
        np.testing.assert_allclose(encode(model, SENTENCES), library(folder), rtol=0, atol=1e-6)
        message = r"^\w+: .* this network, so score\.compute_type cannot be int8; set "
        with pytest.raises(UserError, match=message):
            open_sentence_model(folder, "int8")


@pytest.mark.parametrize(("labels", "softmax"), [(1, False), (3, True)])
def test_cross_encoders(tmp_path: Path, labels: int, softmax: bool) -> None:
    from sentence_transformers import CrossEncoder

    folder = write_bert(tmp_path / "model", labels=labels)
    if labels > 1:
        file = folder / "config.json"
        file.write_text(file.read_text().replace("LABEL_1", "entailment"))
    pairs = list(pairwise(SENTENCES))
    expected = CrossEncoder(str(folder), device="cpu").predict(pairs, apply_softmax=softmax)
    model = open_cross_encoder(folder)
    assert any(isinstance(module, FastNetwork) for module in model.modules())
    found = model.predict(pairs, apply_softmax=softmax)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    rough = open_cross_encoder(folder, "int8").predict(pairs, apply_softmax=softmax)
    assert 0 < np.abs(rough - expected).max() < 0.1
