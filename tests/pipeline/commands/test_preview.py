from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paraloom.beam_jobs.bitext import find_bitext, read_bitext
from paraloom.pipeline.commands.corpus.preview import prepare
from paraloom.pipeline.config import read_config
from paraloom.pipeline.run.plan import plan
from paraloom.pipeline.run.records import StageRecord
from paraloom.pipeline.run.run import Run
from tests.run_helpers import Capsys, WriteConfig, again, manifest, table


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


@pytest.mark.parametrize(
    ("changes", "finished", "target", "changed", "said"),
    [
        (["nmt.model=null"], [], "ingest", {}, "ends after ingest; `paraloom train-nmt`"),
        (["nmt.model=null"], ["nmt"], "select", {}, ""),
        (NEEDY, [], "select", FEW, "without paragram_similarity, mean_idf: a run makes their"),
        (NEEDY, ["paragram", "idf"], "select", {}, ""),
        ([*NEEDY, "score.paragram=vectors", "score.idf=idf"], [], "select", {}, ""),
        (
            *([*NEEDY, "select.where=[paragram_similarity_decile in 2..9]"], [], "bucket"),
            {"select.where": [], "select.deciles": None},
            "ends before the selection, which reads paragram_similarity_decile",
        ),
        (
            *(["select.by=auto", "select.labelled=labelled", "loop.rounds=2"], [], "bucket"),
            {"select.by": "translation_score", "loop.rounds": 1},
            "which reads auto",
        ),
    ],
)
def test_nothing_is_trained(
    write_config: WriteConfig,
    tmp_path: Path,
    capsys: Capsys,
    changes: list[str],
    finished: list[str],
    target: str,
    changed: Mapping[str, object],
    said: str,
) -> None:
    run = Run(read_config(write_config(tmp_path), changes))
    run.records.update({stage: StageRecord() for stage in finished})
    made, small = prepare(run, 5)
    taken = Run(small, base=run)
    assert not {*finished} & {of.path for of in plan(taken)}
    assert all(taken.folder(stage) == str(tmp_path / "run" / stage) for stage in finished)
    assert taken.folder("score") == str(tmp_path / "run/preview/score")
    assert (made, small.run) == (target, str(tmp_path / "run/preview"))
    for key, value in changed.items():
        section, name = key.split(".")
        value = str(tmp_path / value) if isinstance(value, str) and "/" in value else value
        assert getattr(getattr(small, section), name) == value
    err = capsys.readouterr().err
    assert said in err
    assert said or len(err.splitlines()) == 1


def test_plain_text_and_kept_columns(
    write_config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    more = {
        "clean": ["entities"],
        "keep": ["genre"],
        "columns": {"id": "id"},
        "where": ["genre != g0"],
    }
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
