"""Evaluation sentences that are planted in a corpus: how many `select.exclude` finds, and how fast.

python -m benchmarks.planted_leaks [--workers N] [--planted N] [--model NAME] [ROWS]

In a run of generated pairs (`benchmarks.scale`), sentences of STS and SICK, unchanged or changed in
one of several ways, replace some translations, and sentences of the transfer tasks replace others,
as rows without a leak. With `--model`, cosines are computed only for these two kinds of sentences.
Needs PARALOOM_DATA.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from benchmarks import generated, scale
from benchmarks.measure import cost, paraloom
from benchmarks.report import command_line
from paraloom.beam_jobs.engine.launch import Result
from paraloom.beam_jobs.engine.shards import read_shard, receipts, write_receipt, write_shard
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.exclusion import RULES, SENTENCES, EvaluationSentences, embed
from paraloom.models.embeddings.datasets.sentences import sentence_blocks, sentence_files
from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.errors import UserError
from paraloom.models.files import STAGE_RECORD
from paraloom.models.sentence_models import find_model, load_sentence_model
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.run.folder import read_stages, write_json
from paraloom.pipeline.run.records import BackTranslateRecord
from paraloom.pipeline.run.stage import pairs_record

KINDS = ("exact", "re-cased", "one word changed", "inside a longer sentence", "paraphrase")
NATURAL = "none, sentences of transfer tasks"
GENERATED = "none, generated"
BOUNDS = (0.8, 0.9, 0.95)
_SAME = 0.9  # of the scale: two sentences with a higher label are paraphrases


def evaluation_pairs(data: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """First sentences of all pairs, and the paraphrase pairs whose second is not among them."""
    sets = [*read_labelled(data / "sick")]
    for year in sorted((data / "sts").iterdir()):
        sets += read_labelled(year)
    first = [text for pairs in sets for text in pairs.first.to_pylist()]
    known = set(normalised(pa.array(first)).to_pylist())
    same = []
    for pairs in sets:
        low, high = pairs.scale
        close = (pairs.scores - low) / (high - low) > _SAME
        both = zip(pairs.first.to_pylist(), pairs.second.to_pylist(), close, strict=True)
        same += [(one, other) for one, other, holds in both if holds]
    second = normalised(pa.array([other for _, other in same])).to_pylist()
    new = [pair for pair, text in zip(same, second, strict=True) if text not in known]
    return list(dict.fromkeys(first)), new


def plant(kind: str, pair: tuple[str, str], rng: np.random.Generator) -> str:
    """A text that leaks an evaluation sentence, given with its paraphrase."""
    sentence, paraphrase = pair
    words, others = sentence.split(), generated.vocabulary().to_pylist()
    drawn = [others[i] for i in rng.integers(0, len(others), 8)]
    if kind == "re-cased":
        return f"“{sentence.upper().rstrip('.')}”  !"
    if kind == "one word changed":
        place = rng.integers(len(words))
        return " ".join([*words[:place], drawn[0], *words[place + 1 :]])
    if kind == "inside a longer sentence":
        return " ".join([*drawn[:4], sentence.rstrip("."), *drawn[4:]])
    return paraphrase if kind == "paraphrase" else sentence


def texts(data: Path, planted: int) -> tuple[list[str], dict[str, list[str]]]:
    """The evaluation sentences, and the texts to plant, by kind."""
    sentences, paraphrases = evaluation_pairs(data)
    rng = np.random.default_rng(1)
    found = {}
    for kind in KINDS:
        pool = paraphrases if kind == "paraphrase" else [(sentence, "") for sentence in sentences]
        chosen = rng.permutation(len(pool))[:planted]
        found[kind] = [plant(kind, pool[i], rng) for i in chosen]
    natural = [
        text
        for file in sentence_files(data / "transfer").values()
        for block in sentence_blocks(file)
        for text in block.columns[0][1].to_pylist()
    ]
    return sentences, {**found, NATURAL: natural}


def put_into(run: Path, planted: dict[str, list[str]]) -> dict[str, str]:
    """Replace random translations of a run; return the kind of each replaced id."""
    entries = [(kind, text) for kind, of_kind in planted.items() for text in of_kind]
    done = receipts(str(run / "back_translate"))
    starts = np.cumsum([0, *(receipt.rows_out for receipt in done)])
    rows = np.random.default_rng(2).permutation(starts[-1])[: len(entries)]
    if len(rows) < len(entries):
        raise UserError(f"planted_leaks: {starts[-1]:,} rows are fewer than {len(entries):,} texts")
    kinds: dict[str, str] = {}
    for number, receipt in enumerate(done):
        (shard,) = receipt.shards
        pairs = read_shard(shard)
        translations, ids = pairs["translation"].to_pylist(), pairs["id"].to_pylist()
        for entry in np.flatnonzero((rows >= starts[number]) & (rows < starts[number + 1])):
            row = rows[entry] - starts[number]
            kinds[ids[row]], translations[row] = entries[entry]
        where = pairs.schema.get_field_index("translation")
        changed = pairs.set_column(where, pairs.schema.field(where), pa.array(translations))
        Path(shard.path).unlink()
        path = str(run / "back_translate" / f"{receipt.name}.parquet")
        new = write_shard(path, changed.combine_chunks(), unique=True)
        write_receipt(str(run / "back_translate"), receipt.model_copy(update={"shards": (new,)}))
    made = Result(receipts=tuple(receipts(str(run / "back_translate"))))
    record = pairs_record(BackTranslateRecord, made)
    record.key = read_stages(str(run))["back_translate"].key
    write_json(str(run / "back_translate" / STAGE_RECORD), record.json_values())
    return kinds


def found_rows(run: Path, kinds: dict[str, str]) -> dict[str, dict[str, int]]:
    """Rows by kind and by rule that rejected them."""
    counts = {kind: dict.fromkeys(RULES, 0) for kind in (*KINDS, NATURAL, GENERATED)}
    for receipt in receipts(str(run / "corpus")):
        for shard in receipt.rejected_shards:
            for row in read_shard(shard, ["id", "reason"]).to_pylist():
                for rule in RULES:
                    if f" ({rule}), row " in row["reason"]:
                        counts[kinds.get(row["id"], GENERATED)][rule] += 1
    return counts


def main(
    rows: Annotated[int, typer.Argument()] = 1_000_000,
    workers: int = 2,
    planted: Annotated[int, typer.Option(help="Planted sentences of each kind.")] = 500,
    model: Annotated[str, typer.Option(help="A model of sentence-transformers.")] = "",
) -> None:
    """Measure and print two tables."""
    if not (data := os.environ.get("PARALOOM_DATA")):
        raise UserError("planted_leaks: PARALOOM_DATA names no folder")
    sentences, leaks = texts(Path(data), planted)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = scale.make_run(folder, rows, 10_000)
        kinds = put_into(folder / "run", leaks)
        (folder / "evaluation.txt").write_text("".join(f"{text}\n" for text in sentences))
        everything = ["deciles=null", "where=[]", "max_tokens=null", "size=null"]
        exclude = [*everything, f"exclude=['{folder / 'evaluation.txt'}']"]
        seconds = {}
        for name, changes in (
            *(("score", everything), ("bucket", everything), ("select", everything)),
            ("select with exclude", exclude),
        ):
            keys = [f"--set=select.{change}" for change in changes]
            command = paraloom(name.split()[0], f"--config={config}", *keys, workers=workers)
            seconds[name] = cost(command, log=folder / "log.txt").seconds
        counts = found_rows(folder / "run", kinds)
        seconds["exclude alone, one core"] = _seconds(folder / "run")
    similar = _similar(sentences, leaks, model) if model else {}
    sizes = {kind: len(of_kind) for kind, of_kind in leaks.items()}
    sizes[GENERATED] = rows - sum(sizes.values())
    shown = []
    for kind, found in counts.items():
        both = found["equal"] + found["n-grams"]
        numbers = (f"{n:,}" for n in (sizes[kind], found["equal"], found["n-grams"]))
        shares = (f"{share:.1%}" for share in similar.get(kind, []))
        shown.append((kind, *numbers, f"{both / sizes[kind]:.2%}", *shares))
    bounds = [f"cosine > {bound}" for bound in BOUNDS] if similar else []
    heads = ("rows", "equal", "n-grams", "found", *bounds)
    console().print(number_table(f"{rows:,} pairs", "planted", numbers=heads, rows=shown))
    seconds["score and bucket"] = seconds["score"] + seconds["bucket"]
    timed = [(name, f"{of:.1f}", f"{rows / max(of, 1e-9):,.0f}") for name, of in seconds.items()]
    console().print(number_table("Commands", "command", numbers=("s", "pairs/s"), rows=timed))


def _seconds(run: Path) -> float:
    """The time of looking for the sentences in the texts of all pairs, without reading them."""
    sentences = EvaluationSentences(pq.read_table(run / "exclude" / SENTENCES))
    spent = 0.0
    for receipt in receipts(str(run / "bucket")):
        table = read_shard(receipt.shards[0], ["reference", "translation"])
        texts = [column.combine_chunks() for column in table.columns]
        started = time.perf_counter()
        for column in texts:
            sentences.find(column, normalised(column))
        spent += time.perf_counter() - started
    return spent


def _similar(
    sentences: list[str], planted: dict[str, list[str]], name: str
) -> dict[str, list[float]]:
    """The share of texts of each kind with a cosine above each bound."""
    model = load_sentence_model(find_model(name, "--model", "modules.json"))
    vectors, shares = embed(model, pa.array(sentences)), {}
    for kind, of_kind in planted.items():
        nearest = (embed(model, pa.array(of_kind[:2_000])) @ vectors.T).max(axis=1)
        shares[kind] = [float(np.mean(nearest > bound)) for bound in BOUNDS]
    return shares


if __name__ == "__main__":
    command_line(main)
