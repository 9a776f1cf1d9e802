"""`select.where` in the configuration: what is wrong is said with its key, before any work."""

import re
from pathlib import Path

import pytest

from paraloom.models.errors import UserError
from paraloom.pipeline.config import Config, read_config
from paraloom.pipeline.manifest import Manifest
from paraloom.pipeline.plan import key_of
from paraloom.pipeline.stage import Run
from paraloom.pipeline.stages import STAGES

CONFIG = """\
run: {run}
input: {{format: tsv, paths: [bitext.tsv]}}
nmt: {{model: somewhere}}
score: {{scorers: [trigram_overlap, unigram_f1]}}
select: {{by: unigram_f1, where: [{where}]}}
"""


def config(folder: Path, *where: str) -> Config:
    path = folder / "run.yaml"
    path.write_text(CONFIG.format(run=folder / "run", where=", ".join(f"'{c}'" for c in where)))
    return read_config(path)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (["unigram_f1 ~ 0.5"], "select.where[0]: 'unigram_f1 ~ 0.5' is no condition"),
        (["unigram_f1 > 0", "bleu > 0.5"], "select.where[1]: bleu is no column of the pairs"),
        (["unigram_f1_decile in 2..10"], "select.where[0]: 'unigram_f1_decile in 2..10': deciles"),
    ],
)
def test_errors_name_the_key(tmp_path: Path, where: list[str], said: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"run.yaml: {said}")) as caught:
        config(tmp_path, *where)
    assert "\n" not in str(caught.value)


def test_a_changed_condition_changes_the_key_of_the_corpus_alone(tmp_path: Path) -> None:
    def keys(*where: str) -> dict[str, str]:
        run = Run(config=config(tmp_path, *where), manifest=Manifest(str(tmp_path / "run")))
        return {s.name: key_of(s, run) for s in STAGES if s.name in ("score", "bucket", "corpus")}

    plain, one = keys(), keys("unigram_f1 <= 0.5")
    other = keys("unigram_f1 <= 0.6")
    assert len({keys["corpus"] for keys in (plain, one, other)}) == 3
    assert plain["bucket"] == one["bucket"]
    assert plain["score"] == one["score"]
    assert keys("unigram_f1   <= 0.50") == one
