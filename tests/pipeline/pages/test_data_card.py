"""The data card: what it says, what it leaves out, and that datasets opens the corpus with it."""

import copy
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.shards import write_shard
from paraloom.pipeline.pages import cards as card
from paraloom.pipeline.pages.shown import last_name, model_name, shown_configuration
from paraloom.pipeline.run.records import RunRecord, UsedModel
from tests.pipeline.pages.made_run import SCORERS, MadeRun
from tests.run_helpers import record_of


def data_card(record: dict[str, Any], size: int) -> str:
    return card.data_card(RunRecord.model_validate(record), size)


def words(record: dict[str, Any]) -> str:
    """The card without its breaks of lines."""
    return " ".join(data_card(record, 1).split())


@pytest.fixture
def text(run: Path, made_run: MadeRun) -> str:
    """The card of the run, which lies beside the TSV that belongs there."""
    (run / "corpus.tsv.gz").write_bytes(b"not for datasets")
    card.write_data_card(str(run), RunRecord.model_validate(made_run.record))
    return (run / "README.md").read_text()


def test_datasets_opens_the_folder_by_its_card(
    run: Path, corpus: list[dict[str, Any]], text: str, datasets: Any, tmp_path: Path
) -> None:
    """Also with a shard that has no rows."""
    path = next((run / "corpus").glob("part-*.parquet"))
    write_shard(str(run / "corpus" / "part-99999.parquet"), pq.read_table(path)[:0])
    cache = str(tmp_path / "cache")
    opened = datasets.load_dataset(str(run), cache_dir=cache, split="train")
    assert opened.to_list() == corpus
    types = {name: feature.dtype for name, feature in opened.features.items()}
    assert list(types) == schema.bucketed(SCORERS).names
    assert (types["reference"], types["unigram_f1"]) == ("string", "float32")
    assert (types["reference_tokens"], types["unigram_f1_decile"]) == ("int16", "int8")


def test_datasets_reads_a_changed_corpus_again(
    run: Path, text: str, made_run: MadeRun, datasets: Any, tmp_path: Path
) -> None:
    """Its cache knows folders by their last name and the metadata of their cards."""
    cache = str(tmp_path / "cache")
    before = datasets.load_dataset(str(run), cache_dir=cache, split="train").num_rows
    next((run / "corpus").glob("part-*.parquet")).unlink()
    record = copy.deepcopy(made_run.record)
    record["stages"]["select"]["digest"] = "another"
    card.write_data_card(str(run), RunRecord.model_validate(record))
    assert datasets.load_dataset(str(run), cache_dir=cache, split="train").num_rows < before


def test_the_code_of_the_card_opens_the_corpus(
    run: Path, corpus: list[dict[str, Any]], made_run: MadeRun, card_names: Any
) -> None:
    """Of the run, beside the files of other stages, and of a named selection."""
    record = copy.deepcopy(made_run.record)
    record["config"]["select"]["named"] = {"strict": {}}
    record["stages"]["selections/strict/select"] = record["stages"]["select"]
    place = run / "selections/strict/corpus"
    place.mkdir(parents=True)
    some = pq.read_table(next((run / "corpus").glob("part-0-*.parquet")))
    write_shard(str(place / "part-0-01234567.parquet"), some)
    for of, folder, rows in (
        ("", run, corpus),
        ("selections/strict", place.parent, some.to_pylist()),
    ):
        card.write_data_card(str(run), RunRecord.model_validate(record), of)
        assert card_names(folder / "README.md")["corpus"].to_list() == rows


def test_the_card_says_what_the_corpus_is(run: Path, text: str, made_run: MadeRun) -> None:
    head: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    assert head["license"] == "cc-by-4.0"
    assert head["language"] == ["en", "cs"]
    rows = made_run.record["stages"]["select"]["rows_out"]
    size = sum(path.stat().st_size for path in (run / "corpus").glob("part-*.parquet"))
    assert f"{rows:,} rows, {size:,} bytes in 3 Parquet files" in text
    assert "deciles 4–8 of `unigram_f1`, `trigram_overlap <= 0.6`, at most 11 tokens" in text
    assert "Licence of the source: CC BY 4.0" in text
    for name in schema.bucketed(SCORERS).names:
        assert f"| `{name}` |" in text
    lowest = made_run.record["stages"]["bucket"]["deciles"]["unigram_f1"]["lowest"]
    row = next(line for line in text.splitlines() if line.startswith("| 7 |"))
    assert row.split(" | ")[3] == f"{lowest[7]:.4f}"
    assert str(run) not in text  # a card goes out; paths of a machine do not


def test_it_says_how_translations_were_found(made_run: MadeRun) -> None:
    record = copy.deepcopy(made_run.record)
    assert "| `candidate` |" not in data_card(record, 1)
    record["config"]["nmt"] |= {"candidates": 4, "sampling": {"top_k": 10}}
    text = words(record)
    assert "| `candidate` | int8 | number of this candidate" in text
    assert "sampling (top_k 10, temperature 1), 4 translations of each sentence, model" in text


def test_it_states_licence_and_citation_of_a_corpus_of_opus(made_run: MadeRun) -> None:
    record = copy.deepcopy(made_run.record)
    assert "OPUS" not in data_card(record, 1)
    about = {"corpus": "Books", "version": "v1", "license": "*GPL*", "citation": "J. Someone, 2012"}
    record["stages"]["ingest"]["terms"] = [about, {**about, "corpus": "News", "license": ""}]
    said = words(record)
    assert "Books v1 of [OPUS](https://opus.nlpl.eu), licence: \\*GPL\\*. Cite: J. Someone" in said
    assert "News v1 of [OPUS](https://opus.nlpl.eu), licence: not stated. Cite: J. Someone" in said


def test_it_says_how_pairs_were_chosen_and_scored(made_run: MadeRun) -> None:
    record = copy.deepcopy(made_run.record)
    assert "No person has checked the pairs." in data_card(record, 1)
    record["stages"] |= {
        "sentence_model": {"model": {"path": "/m/mini", "sha256": "5a", "license": "mit"}},
        "cross_encoder_model": {"model": {"path": "me/cross", "revision": "0a1"}},
    }
    record["stages"]["bucket"] |= {"rows_out": 4360, "shards": 9, "rejected": {"odd": 4000}}
    record["stages"]["ingest"]["cleaned"] = {"entities": 1234, "nfc": 5}
    record["config"]["select"]["near_duplicates"] = 0.8
    record["config"]["input"]["target_language"] = "de"
    loop = {"labelled": [50.0, 60.0], "data_sets": 1, "pairs": 1, "best": 2}
    record["stages"]["loop"] = loop  # of an earlier configuration, which had two rounds
    text = words(record)
    for said in (
        "`reference`, `translation` and `unigram_f1`, separated by tabs",
        "`sentence_model`: `mini`, SHA-256 of its files `5a`, licence mit. "
        "`cross_encoder_model`: `me/cross`, revision `0a1`, licence not stated by the model. "
        "3. Selection",
        "It covers the 4,360 scored pairs",
        "HTML entities in 1,234, characters not in NFC in 5",
        "texts are equal. Near-copies were rejected, too.",
        "pairs of German sentences that should have the same meaning. A pair is the German "
        "sentence of a row",
        "German translation of `source` by the translation model",
        "| bucket | 360 | 4,360 | odd (4,000) |",
        "| ingest | 400 | 360 | empty reference (30); a reason",
        "| `captions.tsv` | 12,345 |",
    ):
        assert said in text, said
    assert "is best" not in text


def test_a_corpus_of_language_models_names_them_and_no_server(made_run: MadeRun) -> None:
    record = copy.deepcopy(made_run.record)
    del record["stages"]["back_translate"]
    chat = {"kind": "chat", "name": "a", "model": "owner/tiny", "base_url": "http://sesame/v1"}
    record["config"]["generators"] = [chat | {"prices": {"input": 1, "output": 2}}]
    made = {
        **{"model": "owner/tiny", "models": ["/sesame/tiny"], "prompt": "reword"},
        **{"prompt_text": "Say: {{ source }}", "first": 1.8e9, "last": 1.8e9, "requests": 1200},
        **{"tokens_in": 100_000, "tokens_out": 200_000},
    }
    reasons = {"a: no answer: HTTP 400: of sesame": 1}
    record["stages"]["generate"] = {"generators": {"a": made}, "rejected": reasons}
    text = words(record)
    for said in (
        "(`reference`) and a candidate of a language model (`translation`). The corpus",
        "1. Generation by language models. Generator `a`: the model `owner/tiny` (the server names "
        "it `tiny`), asked from 2027-01-15 to 2027-01-15 with the prompt `reword`, "
        "`Say: {{ source }}`; 1,200 requests, 100,000 tokens in, 200,000 out, cost 0.5; terms of "
        "its outputs: ",
        "a: no answer: HTTP 400 (1) |",
        "from the training data of the language models.",
    ):
        assert said in text, said
    assert "sesame" not in text
    record["stages"]["back_translate"] = {"model": {"path": "/sesame/cs-en", "sha256": "5a"}}
    text = words(record)
    assert "translation of the foreign sentence or a candidate of a language model" in text
    assert "of the translation model and of the language models." in text
    assert "English sentence from the generator named in `generator`" in text


EVIL = "<script>x</script>\n---\n\n```\n# Heading\n<img src=x> `a` [b](javascript:c) | \x1b[2J"


def test_hostile_text_stays_text(made_run: MadeRun) -> None:
    record = copy.deepcopy(made_run.record)
    record["config"]["input"]["license"] = EVIL
    record["config"]["run"] = f"runs/{EVIL}"
    record["config"]["select"] |= {"where": []}
    model = {"license": EVIL, "path": EVIL, "family": EVIL, "revision": EVIL, "sha256": EVIL}
    record["stages"]["back_translate"]["model"] = model
    record["stages"]["score"] = {"scorers": {EVIL: {"meaning": EVIL, "unit": ""}}}
    found = RunRecord.model_validate(record)
    for section, values in {
        "score": {"scorers": [EVIL, f"{EVIL} unknown"]},
        "select": {"by": EVIL, "where": [EVIL]},
        "input": {"target_language": EVIL},
    }.items():  # none of which a configuration may have
        changed = getattr(found.config, section).model_copy(update=values)
        found.config = found.config.model_copy(update={section: changed})
    text = card.data_card(found, 10)
    body = text.split("\n---\n", 1)[1]
    assert text.count("\n---\n") == 1  # the end of the metadata
    assert "\x1b" not in text and "# Heading" in body
    assert body.count("\n```") == data_card(made_run.record, 10).count("\n```")
    for line in body.splitlines():
        assert not line.strip().startswith(("# Heading", "---"))
        outside = re.sub("````.*?````", "", line)  # code spans show what is in them
        assert not re.search(r"<(script|img)|(?<!\\)\[b|(?<!\\)`a", outside), line


NAMES = st.text(st.sampled_from("abc.-_ é"), min_size=1, max_size=6)


@given(st.lists(NAMES, min_size=2, max_size=5), st.sampled_from(["/", "~/", "../", "s3://h/"]))
def test_of_any_path_only_the_name_is_shown(names: list[str], root: str) -> None:
    assert last_name(root + "/".join(names)) == names[-1]
    assert last_name("C:\\" + "\\".join(names)) == names[-1]
    assert last_name(f"https://me:word@host/{'/'.join(names)}?token=x") == names[-1]


@pytest.mark.parametrize(
    ("path", "revision", "name"),
    [
        ("me/cs-en", "0a1", "me/cs-en"),
        ("me/cs-en", None, "cs-en"),
        ("/me/cs-en", "0a1", "cs-en"),
        ("s3://me/cs-en", "0a1", "cs-en"),
    ],
)
def test_only_models_of_the_hub_have_their_owner(path: str, revision: str, name: str) -> None:
    assert model_name(UsedModel(path=path, revision=revision)) == name


def test_what_is_not_known_is_not_shown() -> None:
    chat = {"kind": "chat", "name": "a", "n": 2, "temperature": 0.5, "license": "CC0"}
    hidden = {"base_url": "http://sesame:80/v1", "api_key_env": "SESAME", "model": "/sesame"}
    config: dict[str, Any] = {
        "run": "/home/sesame/runs/mine",
        "seed": 3,
        "input": {"license": "CC0", "paths": ["/sesame/a.gz"], "where": ["token_ratio <= 2"]},
        "nmt": {"model": "/sesame/cs-en", "beam": 5, "no_repeat_ngram": 3},
        "generators": [{"kind": "nmt", "name": "nmt"}, chat | hidden],
        "score": {
            "scorers": ["length_ratio", "/home/sesame/own.py:mine"],
            "paragram": "/sesame/v.txt",
        },
        "select": {"by": "length_ratio", "near_duplicates": 0.7, "labelled": "/sesame/sts"},
        "embeddings": {"pairs": [{"paths": ["sesame"]}]},
    }
    shown = shown_configuration(record_of({"config": config}))
    assert "sesame" not in str(shown).lower()
    assert (shown["run"], shown["seed"]) == ("mine", 3)
    assert shown["input"]["license"] == "CC0" and "paths" not in shown["input"]
    assert shown["nmt"]["beam"] == 5 and "model" not in shown["nmt"]
    assert shown["nmt"]["no_repeat_ngram"] == 3 and shown["select"]["near_duplicates"] == 0.7
    assert shown["select"]["by"] == "length_ratio" and "labelled" not in shown["select"]
    nmt, chats = shown["generators"]
    assert nmt == {"kind": "nmt", "name": "nmt"}
    assert chats.items() >= chat.items() and not {*chats} & {*hidden}
    assert shown["scorers"] == ["length_ratio", "mine"]
