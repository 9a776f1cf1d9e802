import json
import shutil
from collections.abc import Callable, Mapping
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.bitext import find_bitext, read_bitext
from paraloom.beam_jobs.engine.shards import Receipt, Shard, write_receipt
from paraloom.models.cpu import cores
from paraloom.models.files import STAGE_RECORD
from paraloom.pipeline.cli import main
from paraloom.pipeline.commands.corpus.estimate import choose, rate
from paraloom.pipeline.commands.corpus.preview import prepare
from paraloom.pipeline.commands.corpus.small_run import configured, measured
from paraloom.pipeline.config import read_config
from paraloom.pipeline.config.input import InputOptions
from paraloom.pipeline.config.selection import NamedSelection
from paraloom.pipeline.run.plan import plan
from paraloom.pipeline.run.records import PairsRecord, StageRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages import folder_of
from tests.chat_server import chat_server
from tests.json_schema import errors_of
from tests.models.scorers.small_transformers import write_sentence_model
from tests.run_helpers import STAGES, Capsys, Patch, WriteConfig, again, manifest, table

Told = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def told(tmp_path: Path, write_config: WriteConfig, capsys: Capsys) -> Told:
    """The estimate of a changed configuration, and what the command prints."""

    def tell(*more: str, **changes: Any) -> tuple[dict[str, Any], str]:
        config, file = write_config(tmp_path, **changes), tmp_path / "estimate.json"
        given = ["--config", str(config), "--json", str(file), *more]
        assert main(["estimate", *given]) == 0
        values = json.loads(file.read_text())
        assert errors_of("estimate", values) == []
        return values, " ".join(capsys.readouterr().out.split())

    return tell


def test_what_a_run_takes_is_what_it_took(tmp_path: Path, finished_run: Path, told: Told) -> None:
    found, out = told("--gpu-hour", "36000")
    assert list(found["jobs"]) == list(STAGES)
    assert (found["rows"], found["counted"], found["sampled"]) == (120, True, 119)
    for stage, job in found["jobs"].items():
        done = manifest(finished_run)["stages"][stage]
        files = (finished_run / "run" / folder_of(stage)).glob("*.*")
        assert job["rows"] == done["rows_in"]
        size = sum(file.stat().st_size for file in files if file.name != "README.md")
        assert size / 7 < job["size"] < 1.1 * size  # one part file, where the run has six
        assert job["cores"] == (cores() if stage == "back_translate" else 1)
        assert job["seconds"] == pytest.approx(job["rows"] / job["rate"] * job["cores"] / cores())
        assert 0 < job["rate"] < 1e7
    assert not (tmp_path / "run").exists()
    hours = found["jobs"]["back_translate"]["seconds"] / 3600
    assert found["translation_hours"] == pytest.approx(hours)
    assert found["translation_cost"] == pytest.approx(36000 * hours)
    shown = rate(hours), rate(36000 * hours)
    assert f"translates for {shown[0]} hours and costs {shown[1]}, at 36000 an hour" in out
    speed = float(f"{found['jobs']['score']['rate']:.2g}")
    assert f"{speed:,.0f} rows/s, a core" in out
    assert "Rows: counted; 0.8% of the rows that were read cannot be used" in out
    assert "119 sentences sampled from the beginnings of 1 file(s)" in out
    assert f"on {cores()} CPU cores, float32, beam 2" in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("nmt.model=null", "nmt.model: null: this run trains its own model, which the estimate"),
        (
            "nmt.max_source_subwords=1",
            "back_translate: none of 119 sampled sentences was translated",
        ),
        ("input.where=[source_tokens > 999]", "input.where: no row at the beginning"),
    ],
)
def test_what_cannot_be_estimated_is_one_line(
    write_config: WriteConfig, tmp_path: Path, capsys: Capsys, change: str, said: str
) -> None:
    config = str(write_config(tmp_path))
    assert main(["estimate", "--config", config, "--set", change]) == 2
    *while_it_works, line = capsys.readouterr().err.splitlines()
    assert said in line and "paraloom: " not in "".join(while_it_works)


def test_what_a_unit_opens_is_not_extrapolated(tmp_path: Path) -> None:
    for name, seconds, ended in (("b", 9.0, 1.0), ("a", 2.0, 2.0), ("c", 3.0, 3.0)):
        shards = (Shard(f"{name}.parquet", 90, "0", 500),)
        receipt = Receipt(name=name, key="", rows_in=100, shards=shards, rejected={"why": 10})
        times = {"seconds": seconds, "ended": ended}
        write_receipt(str(tmp_path / "bucket"), receipt.model_copy(update=times))
    run: Any = SimpleNamespace(folder=lambda stage: str(tmp_path / stage))
    job = measured(run, "bucket", PairsRecord(rows_in=300, peak_memory=7), 2)
    assert (job.rate, job.rows, job.size, job.memory) == (200 / 5, 300, 1500, 7)
    (larger,) = [job.of(3_000, share=0.5, many=2)]
    assert (larger.rate, larger.rows, larger.size) == (20, 3_000, 7_500)


def test_a_sample_without_a_selected_pair_and_a_runner_elsewhere(told: Told) -> None:
    beam = ("--", "--runner", "DataflowRunner", "--direct_num_workers=1")
    named: dict[str, Any] = {"strict": {}}
    found, out = told(*beam, select={"where": ["reference_tokens > 900"], "named": named})
    assert list(found["jobs"]) == list(STAGES[:-1])
    strict = [name for name in found["not_timed"] if "strict" in name]
    assert strict == ["selections/strict/select"], "its encoder is trained by another command"
    assert found["not_timed"][0] == "select" and "Not in the table: select" in out


def test_a_runs_model_and_several_candidates(tmp_path: Path, nmt_model: Path, told: Told) -> None:
    scorers = ["paragram_similarity", "mean_idf", "trigram_overlap"]
    shutil.copytree(nmt_model, tmp_path / "run/nmt")
    (tmp_path / "run/nmt" / STAGE_RECORD).write_text("{}")
    found, _ = told(
        nmt={"model": None, "beam": 4, "candidates": 4},
        score={"scorers": scorers, "phrases": str(tmp_path / "phrases")},
        select={"where": ["mean_idf >= 0", "trigram_overlap <= 1"]},
    )
    assert found["left_out"] == ["paragram_similarity", "mean_idf"]
    rows = {stage: job["rows"] for stage, job in found["jobs"].items()}
    assert (rows["ingest"], rows["back_translate"]) == (120, 119)
    assert 3 * 118 < rows["score"] == rows["select"] <= 4 * 118


def test_conditions_and_repeats(tmp_path: Path, bitext: dict[str, str], told: Told) -> None:
    paths = {}
    for side, path in bitext.items():
        paths[side] = str(tmp_path / side)
        Path(paths[side]).write_text(2 * Path(path).read_text(encoding="utf-8"), encoding="utf-8")
    short = [len(line.split()) for line in Path(bitext["source"]).read_text().splitlines() if line]
    found, out = told(input={"paths": paths, "unique": "source", "where": ["source_tokens > 4"]})
    left = found["kept"] * 238
    assert 2 * sum(n > 4 for n in short) <= left < 238
    assert found["translated"] <= 0.5, "every source is there twice"
    assert found["jobs"]["back_translate"]["rows"] == round(left * found["translated"])
    assert found["jobs"]["score"]["rows"] <= round(left)
    assert f"Of 238 usable rows, `input` keeps {found['kept']:.1%}; of the kept rows, " in out


def test_pairs_of_which_the_user_gives_the_number(tmp_path: Path, told: Told) -> None:
    """Nothing is translated, and nothing is counted."""
    (tmp_path / "pairs.tsv").write_text("A dog runs.\tA dog is running.\nNo.\tNo, not at all.\n")
    pairs = {"format": "pairs", "paths": [str(tmp_path / "pairs.tsv")]}
    pairs |= {"where": ["reference_tokens > 2"]}
    score = {"scorers": ["trigram_overlap"]}
    found, out = told("--rows", "240", input=pairs, score=score, nmt={"model": None})
    assert (found["rows"], found["counted"], found["jobs"]["score"]["rows"]) == (240, False, 120)
    assert "Rows: given by --rows; 0.0% of the rows" in out
    assert "Of 2 usable rows, `input` keeps 50.0%. These percentages may be lower" in out


@pytest.mark.parametrize("format, paths", [("moses", {}), ("text", []), ("pairs", [])])
@pytest.mark.parametrize("unique", [None, "pair"])
def test_near_copies_are_not_translated(format: str, paths: Any, unique: Any) -> None:
    texts = ["A dog barks in the yard.", "a dog barks in the yard", "It rains.", "It rains!", "Hm"]
    sources = ["" if format == "text" else text.upper() for text in texts]
    pairs = pa.table({"source": sources, "reference": texts})
    options = InputOptions(format=format, paths=paths, unique=unique, near_duplicates=0.7)
    count, chosen = choose(pairs, options)
    assert (count, chosen["reference"].to_pylist()) == (3, texts[::2])


def test_an_encoder_on_a_selection_is_estimated(write_config: WriteConfig, tmp_path: Path) -> None:
    named, of = {"named": {"strict": {"deciles": [9]}}}, {"selection": "strict"}
    run = Run(read_config(write_config(tmp_path, select=named, embeddings=of)))
    sample = pa.table({"id": ["1"], "source": ["s"], "reference": ["r"]})
    small = configured(run, sample, str(tmp_path / "small"))
    assert (small.select.named, small.embeddings.selection) == ({}, None)


SLOW = """
from paraloom.models.scorers import Scorer
import time

def function(pairs):
    time.sleep(0.01 * len(pairs))
    return [0.5] * len(pairs)

slow = Scorer(function=function, meaning="", unit="")
"""


def test_scorers_with_a_model_and_of_others_are_timed(tmp_path: Path, told: Told) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    model = write_sentence_model(tmp_path / "model")
    words = ["dog", "cat"]
    (tmp_path / "vectors.txt").write_text("".join(f"{word} 0.5 1\n" for word in words))
    scorers = ["paragram_similarity", "sentence_similarity", f"{tmp_path}/slow.py:slow"]
    given = {"paragram": str(tmp_path / "vectors.txt"), "sentence_model": str(model)}
    changes: dict[str, Any] = {"score": {"scorers": [*scorers, "mean_idf"], **given}}
    changes["select"] = {"by": "slow", "deciles": [9]}
    options = ("--rows", "1000000", "--rows-per-second", "250", "--device", "H9")
    found, out = told(*options, **changes)
    assert found["left_out"] == ["mean_idf"]
    job = found["jobs"]["score"]
    assert 0 < job["rate"] <= 100  # the scorer sleeps for 0.01 s per pair
    assert (job["cores"], job["device"]) == (cores(), f"{cores()} CPU cores")
    translation = found["jobs"]["back_translate"]
    assert (found["jobs"]["ingest"]["rows"], translation["device"]) == (1_000_000, "H9")
    assert translation["seconds"] == pytest.approx(translation["rows"] / 250)
    assert "250 rows/s, H9" in out and "Rows: given by --rows; " in out
    assert not found["counted"]


def test_language_models_give_prices(told: Told) -> None:
    with chat_server() as (server, url):
        chat = {"kind": "chat", "base_url": url, "model": "good", "n": 2}
        paid = {"name": "paid", "prices": {"input": 50.0, "output": 1000.0}}
        slow = {"name": "slow", "requests_per_minute": 6}
        generators = [{"kind": "nmt"}, chat | paid, chat | slow]
        found, out = told(generators=generators)
        assert "paid: 119 requests, not in the table; `--requests 20`" in out
        assert not server.answered
        assert "generate" not in found["jobs"]
        before = found["jobs"]["score"]["rows"] - 4 * 119
        assert 110 < before <= 119
        found, out = told("--requests", "1", generators=generators)
        assert len(server.answered) == 2
    cheap, most = found["generators"]["paid"], found["generators"]["slow"]
    assert cheap["tokens_out"] == 119 * 10
    made = found["jobs"]["generate"]
    assert most["seconds"] == made["seconds"] == 1190, "one begins every 10 s"
    assert made["rows"] == found["jobs"]["score"]["rows"]
    assert list(found["jobs"])[1:4] == ["back_translate", "generate", "score"]
    # 10 tokens in and 2 answers of 5 out, of each of 119 requests
    assert ", 1,200 + 1,200 tokens, cost 1.2, from 1 answers." in out
    assert "slow: 119 requests, 20 min" in out


def test_language_models_without_a_translation_model(told: Told) -> None:
    with chat_server() as (_, url):
        chat = {"kind": "chat", "name": "a", "base_url": url, "model": "good", "n": 2}
        paid, other = {"prices": {"input": 0.1, "output": 0.1}}, {"name": "b", "model": "400"}
        found, out = told(
            "--requests", "1", "--gpu-hour", "3", generators=[chat | paid, chat | other],
            nmt={"model": None}, score={"scorers": ["unigram_f1"]},
            select={"by": "unigram_f1", "per_generator": 0.5},
        )  # fmt: skip
    assert list(found["jobs"]) == ["ingest", "generate", "score", "bucket", "select"]
    assert "b" not in found["generators"] and "b: gave no answer that can be used." in out
    assert found["sampled"] == 0 and found["jobs"]["score"]["rows"] == 4 * 119
    assert "Back-translation: none" in out and "an hour" not in out
    assert "1,200 + 1,200 tokens, cost 0.00024, from 1 answers." in out


def test_the_sample_has_the_rows_and_values_of_the_run(
    write_config: WriteConfig, tmp_path: Path, finished_run: Path, capsys: Capsys
) -> None:
    write_config(tmp_path, input={"where": ["source_tokens <= 5"]}, select={"size": 1})
    assert again("preview", tmp_path, "-n", "60") == 0
    (tmp_path / "preview").mkdir()
    (tmp_path / "run/preview").rename(tmp_path / "preview/run")  # as the helpers have it
    stages = manifest(tmp_path / "preview")["stages"]
    assert list(stages) == ["ingest", "back_translate", "score", "bucket", "select"]
    assert stages["ingest"]["rows_in"] == 60
    (reason,) = stages["ingest"]["rejected"]
    assert reason == "not source_tokens <= 5"
    columns = ["id", "source", "reference", "translation", "translation_score", "trigram_overlap"]
    found = table(tmp_path / "preview", "score", *columns).to_pylist()
    whole = {row["id"]: row for row in table(finished_run, "score", *columns).to_pylist()}
    assert 10 < len(found) < 60
    rejected = sum(stages[name]["rows_rejected"] for name in ("ingest", "back_translate"))
    assert len(found) == 60 - rejected
    for row in found:  # batches of other rows round otherwise
        score = pytest.approx(row["translation_score"], abs=1e-5)
        assert whole[row["id"]] == row | {"translation_score": score}
    assert stages["select"]["rows_out"] > 1, "the size of the corpus is no size for a sample"
    assert "random pairs of the corpus" in (tmp_path / "preview/run/report/index.html").read_text()
    err = capsys.readouterr().err
    assert "60 of about 120 rows, from the beginnings of 1 file(s); 0.8% of the rows" in err
    assert not (tmp_path / "run/manifest.json").exists()


NEEDY = ["score.scorers+=[paragram_similarity, mean_idf]", "score.phrases=phrases.gz"]
FEW = {"score.scorers": ["translation_score", "trigram_overlap"]}
NAMED = "select.named={a: {where: [paragram_similarity >= 0.9]}, b: {deciles: [9]}}"


@pytest.mark.parametrize(
    ("changes", "finished", "target", "changed", "said"),
    [
        (["nmt.model=null"], [], "ingest", {}, "ends after ingest; `paraloom train-nmt`"),
        (["nmt.model=null"], ["nmt"], "select", {}, ""),
        (NEEDY, [], "select", FEW, "leaves out paragram_similarity, mean_idf, because the run"),
        (NEEDY, ["paragram", "idf"], "select", {}, ""),
        ([*NEEDY, "score.paragram=vectors", "score.idf=idf"], [], "select", {}, ""),
        (
            *([*NEEDY, NAMED, "embeddings.selection=a"], [], "select"),
            {"select.selections": {"b": NamedSelection(deciles=[9])}},
            "leaves out the selection a, which needs paragram_similarity",
        ),
        (
            *([*NEEDY, "select.where=[paragram_similarity_decile in 2..9]"], [], "bucket"),
            {"select.where": [], "select.deciles": None},
            "ends before the selection, which needs paragram_similarity_decile",
        ),
        (
            *(["select.by=auto", "select.labelled=labelled", "loop.rounds=2"], [], "bucket"),
            {"select.by": "translation_score", "loop.rounds": 1},
            "which needs all pairs of the run (select.by: auto)",
        ),
    ],
)
def test_nothing_is_trained(
    write_config: WriteConfig, tmp_path: Path, capsys: Capsys, changes: list[str],
    finished: list[str], target: str, changed: Mapping[str, object], said: str,
) -> None:  # fmt: skip
    run = Run(read_config(write_config(tmp_path), changes))
    run.records.update({stage: StageRecord() for stage in finished})
    made, small = prepare(run, 5)
    taken = Run(small, base=run)
    assert not {*finished} & {of.path for of in plan(taken)}
    assert all(taken.folder(stage) == str(tmp_path / "run" / stage) for stage in finished)
    assert taken.folder("score") == str(tmp_path / "run/preview/score")
    assert (made, small.run) == (target, str(tmp_path / "run/preview"))
    for key, value in changed.items():
        value = str(tmp_path / value) if isinstance(value, str) and "/" in value else value
        assert attrgetter(key)(small) == value
    err = capsys.readouterr().err
    assert said in err
    assert said or len(err.splitlines()) == 1


def test_plain_text_and_kept_columns(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: Patch
) -> None:
    lines = [f"Sentence {number}.\n" for number in range(9)]
    (tmp_path / "text.txt").write_text("".join(lines))
    text = {"format": "text", "paths": [str(tmp_path / "text.txt")]}
    nmt = {"forward_model": "there", "model": "back"}
    config = read_config(write_config(tmp_path, input=text, nmt=nmt))
    _, small = prepare(Run(config), 4)
    assert small.input is not None
    (path,) = small.input.paths
    drawn = Path(path).read_text().splitlines(keepends=True)
    assert len(drawn) == 4
    assert [line for line in lines if line in drawn] == drawn

    row = '{{"id": "{n}", "source": "s{n}", "reference": "&amp;lt;", "genre": "g{n}"}}'
    rows = [row.format(n=n) for n in (1, 2)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    more: Any = {"clean": ["entities"], "keep": ["genre"], "where": ["genre != g0"]}
    more["columns"] = {"id": "id"}
    jsonl = {"format": "jsonl", "paths": [str(tmp_path / "rows.jsonl")], "license": "${WORD}"}
    monkeypatch.setenv("WORD", "secret")
    config = read_config(write_config(tmp_path, input=jsonl | more))
    _, small = prepare(Run(config), 2)
    assert "secret" not in str(small.written)
    assert small.input is not None
    (sample,) = small.input.paths
    assert pq.read_table(sample).column_names == ["id", "source", "reference", "genre"]
    (bitext,) = find_bitext(small.input.format, small.input.paths, small.input.layout)
    (block,) = read_bitext(bitext)
    assert block.pairs["genre"].to_pylist() == ["g1", "g2"]
    assert block.pairs["id"].to_pylist() == ["1", "2"]
    assert block.pairs["reference"].to_pylist() == ["&lt;"] * 2, "cleaned once"
