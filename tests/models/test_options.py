"""Options: errors of one line, input files, and the values that keys of finished runs depend on."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.models.embeddings.options import ParagramOptions
from paraloom.models.errors import UserError
from paraloom.models.nmt.options import NmtOptions, NmtTrainingOptions
from paraloom.models.structured import (
    front_matter,
    parse_json,
    parse_yaml,
    read_json,
    read_yaml,
)
from paraloom.papers.options import MaLSTMOptions, SimilarityOptions, SystemOptions
from paraloom.pipeline.config.selection import AutoOptions
from tests.run_helpers import refuses

SMALL = NmtTrainingOptions(pieces=2000, learning_rate=0.004)
SIMILARITY = SimilarityOptions(data=["a", "b"], start="s", held_out=0.2)
MALSTM = MaLSTMOptions(data=["a"], pretrain=["p"], synonyms="t")
CHANGED = SystemOptions(dim=50, model="lstm-avg", hidden=20, dropout=0.1, initial_vectors=None)
CHANGED = CHANGED.replace(similarity=SIMILARITY)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        (NmtTrainingOptions().model_dump(exclude_none=True), "0c449c1f68a63ee4"),
        (SMALL.model_dump(exclude_none=True), "1344435e29bda8a7"),
        (ParagramOptions().model_dump(), "44c623380fa39a99"),
        (AutoOptions().model_dump(), "44ece47505dab3db"),
        (CHANGED.of_weights(), "f9bfb92bd32f4f8f"),
        (CHANGED.replace(checkpoint_every=7, device="cpu").of_weights(), "f9bfb92bd32f4f8f"),
    ],
)
def test_finished_stages_keep_their_keys(values: object, key: str) -> None:
    """Keys that were recorded once: another key makes finished work again."""
    assert content_key(values).startswith(key)


def test_the_keys_that_count_give_the_options_back() -> None:
    options = SystemOptions(initial_vectors=None, max_vocabulary=None, hidden=3)
    chosen = options.chosen()
    assert SystemOptions.of(json.loads(json.dumps(chosen))) == options
    assert "pairs" not in chosen and "similarity" not in CHANGED.chosen()


def test_files_count_by_their_content(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    options = SystemOptions.of({"pairs": [{"paths": [str(path)]}], "initial_vectors": None})
    keys = []
    for text in ("a", "b", "a"):
        path.write_text(text)
        keys.append(content_key(options.of_weights()))
    path.rename(tmp_path / "other.tsv")
    moved = options.map_files(lambda *_: str(tmp_path / "other.tsv"))
    assert keys[0] == keys[2] == content_key(moved.of_weights()) != keys[1]


QUOTE = "; put it in quotes, since YAML does not read it as text"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"dim": True}, "dim: must be a valid integer, not true"),
        ({"tags": 1}, "tags: must be a valid boolean or must be 'start' or 'end', not 1"),
        ({"margin": 0.0}, "margin: must be greater than 0, not 0.0"),
        ({"dropout": 1.0}, "dropout: must be less than 1, not 1.0"),
        ({"margin": float("inf")}, "margin: must be a finite number, not inf"),
        ({"dropuot": 0.1}, "dropuot: unknown key; did you mean dropout?"),
        (
            {"similarity": {"data": [3]}},
            f"similarity.data[0]: must be a valid string, not 3{QUOTE}",
        ),
        ({"model": False}, f"model: must be a valid string, not false{QUOTE}"),
        (
            {"development": True},
            f"development: must be a valid string or must be a valid list, not true{QUOTE}",
        ),
        ({"model": None}, "model: is empty; give it a value, or remove it"),
        ({"device": False}, "device: must be 'auto', 'cpu' or 'cuda', not false"),
        ({"similarity": {}}, "similarity.data: is missing"),
        ({"similarity": [1]}, "similarity: must consist of keys and values, not [1]"),
        (["dim"], "configuration: must consist of keys and values, not ['dim']"),
    ],
)
def test_an_error_is_one_line_that_names_the_key(values: object, message: str) -> None:
    with pytest.raises(ValueError) as error:
        SystemOptions.of(values)
    assert str(error.value) == message


def test_options_that_do_not_fit_each_other() -> None:
    values = {"task": "similarity", "similarity": {"data": ["a"]}}
    with pytest.raises(ValueError, match=r"^development: is for task paraphrases, not for sim"):
        SystemOptions.of({**values, "development": "b"})
    assert SystemOptions.of({**values, "development": "b", "task": "paraphrases"})
    scrambled = {"scramble": 0.5, "scramble_variant": "after_negatives"}
    with pytest.raises(ValueError, match="scramble_variant: task similarity has no negatives"):
        SystemOptions.of({**values, **scrambled})


def test_a_constructor_reports_errors_in_one_line_too() -> None:
    with pytest.raises(ValueError, match=r"^beam: must be greater than or equal to 1, not 0$"):
        NmtOptions(beam=0)
    with pytest.raises(ValueError, match=r"^training\.dim: must be even and a multiple of heads$"):
        NmtOptions(training={"heads": 7})  # type: ignore[arg-type]


def test_input_files_are_found_and_replaced() -> None:
    options = SystemOptions(task="malstm", malstm=MALSTM, initial_vectors="v")
    options = options.replace(similarity=SIMILARITY)
    files = {"malstm.data[0]": "a", "malstm.pretrain[0]": "p", "malstm.synonyms": "t"}
    assert options.files() == {**files, "initial_vectors": "v"}  # none of another task
    moved = options.map_files(lambda key, path, mark: f"/{key}/{path}")
    assert moved.files() == {key: f"/{key}/{path}" for key, path in options.files().items()}
    assert moved.similarity == SIMILARITY
    assert options.map_files(lambda key, path, mark: path) is options
    assert NmtOptions(model="m").files(lambda mark: mark.copied) == {}


NINE = {n: ", ".join([f"*{m}"] * 9) for m, n in pairwise("abcdefgh")}
LISTS = "a: &a [1]\n" + "".join(f"{n}: &{n} [{of}]\n" for n, of in NINE.items())
MERGED = "a: &a {k: 1}\n" + "".join(f"{n}: &{n} {{<<: [{of}]}}\n" for n, of in NINE.items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: duplicate key a$"),
        ("a: " + "[" * 5000, "recursion"),
        ("a: !!bool maybe", "maybe"),
        ("a: {{b}}", "line 1: a key must be text"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("run: &a [*a]", "line 1: an alias contains itself"),
        (LISTS, "its aliases expand to more than 10,000 values"),
        ("a: &a {<<: *a}", "line 1: an alias contains itself"),
        ("a: &a [" + "1," * 5000 + "]\nb: [*a, *a, *a]", "its aliases expand to more than 10,000"),
        (MERGED, "its aliases expand to more than 10,000"),
        ("a: !!python/object:os.system {}", "could not determine a constructor"),
    ],
)
def test_what_yaml_may_hold(text: str, message: str) -> None:
    with refuses(rf"^a\.yaml: .*{message}"):
        parse_yaml(text, "a.yaml")


def test_aliases_merges_and_powers_of_ten_are_yaml() -> None:
    text = "base: &base {a: 1, b: [2]}\nmore: {<<: *base, c: *base}"
    base = {"a": 1, "b": [2]}
    assert parse_yaml(text, "") == {"base": base, "more": {**base, "c": base}}
    assert parse_yaml("", "") is None
    many = list(range(20_000))
    assert parse_yaml(f"a: {many}\nb: &b {many[:9000]}\nc: *b", "")["a"] == many
    found = parse_yaml("[1e-5, 2E3, -1.5e+2, 1.e4, e5, 1e, version 1e5]", "f.yaml")
    assert found == [1e-5, 2e3, -150.0, 1e4, "e5", "1e", "version 1e5"]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"a: \xe9")
    with pytest.raises(UserError, match=r"latin: cannot be read \(UnicodeDecodeError"):
        read_yaml(tmp_path / "latin")


def test_the_front_matter_of_a_card(tmp_path: Path) -> None:
    card = tmp_path / "README.md"
    for text, found in {
        "---\na: 1\n---\n# A model\n---\n": {"a": 1},
        "\ufeff---\r\na: 1\r\n---": {"a": 1},
        "\n---\na: 1\nb:\n  - x\n---\n": {"a": 1, "b": ["x"]},
        "# A model\n---\na: 1\n---\n": None,
        "---\na: 1\n": None,
        "": None,
    }.items():
        card.write_text(text, "utf-8", newline="")
        assert front_matter(card) == found
    card.write_text("---\na: &a [*a]\n---\n")
    with pytest.raises(UserError, match=r"README\.md: line 1: an alias contains itself"):
        front_matter(card)


class Sizes(BaseModel):
    sizes: dict[str, int]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "EOF"), ("[" * 100_000, "recursion limit"), ("{}", "sizes: Field required"),
        ('{"sizes": null}', "sizes: Input should be an object"),
        ('{"sizes": {"words": 1e999}}', "sizes.words: "), (b"\xff{}", "Invalid JSON"),
    ],
)  # fmt: skip
def test_json_of_another_type(tmp_path: Path, text: str | bytes, message: str) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ValueError, match=message):
        parse_json(data, Sizes)
    path = tmp_path / "sizes.json"
    path.write_bytes(data)
    with refuses(rf"sizes\.json: not a list of sizes .*{message}"):
        read_json(path, Sizes, "a list of sizes")


def test_json_of_the_type(tmp_path: Path) -> None:
    for mark in ("", "\ufeff"):
        (tmp_path / "a.json").write_text(mark + '{"sizes": {"words": 3}, "more": 1}', "utf-8")
        (tmp_path / "a.yaml").write_text(mark + "sizes: {words: 3}", "utf-8")
        assert read_yaml(tmp_path / "a.yaml") == {"sizes": {"words": 3}}
    assert read_json(tmp_path / "a.json", Sizes, "").sizes == {"words": 3}
    with pytest.raises(UserError, match=r"b\.json: cannot be read"):
        read_json(tmp_path / "b.json", Sizes, "")
