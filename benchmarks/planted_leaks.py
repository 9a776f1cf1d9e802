"""Measures how many planted evaluation sentences `select.exclude` finds, and how fast it is.

python -m benchmarks.planted_leaks [ROWS] [--workers N] [--planted N] [--model NAME]

Planted texts replace translations in a run of generated pairs. Most planted texts are sentences of
STS and SICK, unchanged or changed in one of several ways. Sentences of the transfer tasks measure
false alarms. With `--model`, the cosines of planted texts with evaluation sentences are measured,
too. PARALOOM_DATA names the folder of the data.
"""

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
from benchmarks.report import DATA, command_line, print_table
from paraloom.beam_jobs.engine.shards import read_shard, receipts
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.exclusion import RULES, SENTENCES, EvaluationSentences, embed
from paraloom.models.embeddings.datasets.sentences import sentence_blocks, sentence_files
from paraloom.models.embeddings.datasets.similarity import read_labelled
from paraloom.models.sentence_models import find_model, load_sentence_model

KINDS = ("exact", "re-cased", "one word changed", "inside a longer sentence", "paraphrase")
NATURAL = "none, sentences of transfer tasks"
GENERATED = "none, generated"
BOUNDS = (0.8, 0.9, 0.95)
_SAME = 0.9  # pairs with a label above this share of the scale are paraphrases


def evaluation_pairs(data: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the first sentences of STS and SICK, and pairs of a first sentence and a paraphrase.

    A paraphrase that is also a first sentence is left out.
    """
    folders = [data / "sick", *sorted((data / "sts").iterdir())]
    sets = [pairs for folder in folders for pairs in read_labelled(folder)]
    first = [text for pairs in sets for text in pairs.first.to_pylist()]
    known = set(normalised(pa.array(first)).to_pylist())
    same = []
    for pairs in sets:
        low, high = pairs.scale
        rows = (pairs.scores - low) / (high - low) > _SAME
        one, other = (side.filter(pa.array(rows)) for side in (pairs.first, pairs.second))
        keys = normalised(other).to_pylist()
        both = zip(one.to_pylist(), other.to_pylist(), keys, strict=True)
        same += [(sentence, paraphrase) for sentence, paraphrase, key in both if key not in known]
    return list(dict.fromkeys(first)), same


def plant(kind: str, pair: tuple[str, str], rng: np.random.Generator) -> str:
    """Return a text that leaks a sentence. `pair` has the sentence and a paraphrase."""
    sentence, paraphrase = pair
    words, others = sentence.split(), generated.vocabulary().to_pylist()
    drawn = [others[i] for i in rng.integers(0, len(others), 8)]
    if kind == "re-cased":
        return f"“{sentence.upper().rstrip('.')}”  !"
    if kind == "one word changed":
        words[rng.integers(len(words))] = drawn[0]
        return " ".join(words)
    if kind == "inside a longer sentence":
        return " ".join([*drawn[:4], sentence.rstrip("."), *drawn[4:]])
    return paraphrase if kind == "paraphrase" else sentence


def texts(data: Path, planted: int) -> tuple[list[str], dict[str, list[str]]]:
    """Return the evaluation sentences and, by kind, the texts to plant."""
    sentences, paraphrases = evaluation_pairs(data)
    rng = np.random.default_rng(1)
    found = {}
    for kind in KINDS:
        pool = paraphrases if kind == "paraphrase" else [(sentence, "") for sentence in sentences]
        found[kind] = [plant(kind, pool[i], rng) for i in rng.permutation(len(pool))[:planted]]
    blocks = (
        b for file in sentence_files(data / "transfer").values() for b in sentence_blocks(file)
    )
    found[NATURAL] = [text for block in blocks for text in block.columns[0][1].to_pylist()]
    return sentences, found


def placed(planted: dict[str, list[str]], rows: int) -> tuple[generated.Changes, dict[str, str]]:
    """Return changes that plant the texts in random rows, and the kind of text by id of the row."""
    entries = [(kind, text) for kind, of_kind in planted.items() for text in of_kind]
    found = list(zip(generated.places(len(entries), rows), entries, strict=True))
    changes = {row: {"translation": text} for row, (_, text) in found}
    return changes, {f"generated-{row}": kind for row, (kind, _) in found}


def found_rows(run: Path, kinds: dict[str, str]) -> dict[str, dict[str, int]]:
    """Count the rejected rows by kind and by rule."""
    counts = {kind: dict.fromkeys(RULES, 0) for kind in (*KINDS, NATURAL, GENERATED)}
    for receipt in receipts(str(run / "corpus")):
        for shard in receipt.rejected_shards:
            for row in read_shard(shard, ["id", "reason"]).to_pylist():
                for rule in RULES:
                    if f" ({rule}), row " in row["reason"]:
                        counts[kinds.get(row["id"], GENERATED)][rule] += 1
    return counts


def search_seconds(run: Path) -> float:
    """Return the seconds of a search in all texts on one core, without reading the files."""
    sentences = EvaluationSentences(pq.read_table(run / "exclude" / SENTENCES))
    spent = 0.0
    for receipt in receipts(str(run / "bucket")):
        table = read_shard(receipt.shards[0], ["reference", "translation"])
        columns = [column.combine_chunks() for column in table.columns]
        started = time.perf_counter()
        for column in columns:
            sentences.find(column, normalised(column))
        spent += time.perf_counter() - started
    return spent


def similar(
    sentences: list[str], planted: dict[str, list[str]], name: str
) -> dict[str, list[float]]:
    """Return, by kind, the shares of texts with a cosine above each of `BOUNDS`."""
    model = load_sentence_model(find_model(name, "--model", "modules.json"))
    vectors, shares = embed(model, pa.array(sentences)), {}
    for kind, of_kind in planted.items():
        nearest = (embed(model, pa.array(of_kind[:2_000])) @ vectors.T).max(axis=1)
        shares[kind] = [float(np.mean(nearest > bound)) for bound in BOUNDS]
    return shares


def main(
    rows: Annotated[int, typer.Argument()] = 1_000_000,
    workers: int = 2,
    planted: Annotated[int, typer.Option(help="Planted sentences of each kind.")] = 500,
    model: Annotated[str, typer.Option(help="A model of sentence-transformers.")] = "",
) -> None:
    """Measure and print two tables."""
    sentences, leaks = texts(DATA, planted)
    changes, kinds = placed(leaks, rows)
    seconds = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = scale.make_run(folder, rows, 10_000, changes)
        (folder / "evaluation.txt").write_text("".join(f"{text}\n" for text in sentences))
        every = [f"--set=select.{key}" for key in ("deciles=null", "where=[]", "max_tokens=null")]
        every.append("--set=select.size=null")
        exclude = f"--set=select.exclude=['{folder / 'evaluation.txt'}']"
        commands = {"score": every, "bucket": every, "select": every}
        for name, keys in {**commands, "select with exclude": [*every, exclude]}.items():
            command = paraloom(name.split()[0], f"--config={config}", *keys, workers=workers)
            seconds[name] = cost(command, log=folder / "log.txt").seconds
        counts = found_rows(folder / "run", kinds)
        seconds["exclude alone, one core"] = search_seconds(folder / "run")
    shares = similar(sentences, leaks, model) if model else {}
    sizes = {kind: len(of_kind) for kind, of_kind in leaks.items()}
    sizes[GENERATED] = rows - sum(sizes.values())
    shown = []
    for kind, found in counts.items():
        numbers = [f"{n:,}" for n in (sizes[kind], found["equal"], found["n-grams"])]
        share = (found["equal"] + found["n-grams"]) / sizes[kind]
        shown.append((kind, *numbers, f"{share:.2%}", *(f"{x:.1%}" for x in shares.get(kind, []))))
    bounds = [f"cosine > {bound}" for bound in BOUNDS] if shares else []
    heads = ("rows", "equal", "n-grams", "found", *bounds)
    print_table(f"{rows:,} pairs", ["planted"], heads, shown)
    seconds["score and bucket"] = seconds["score"] + seconds["bucket"]
    timed = [(name, f"{of:.1f}", f"{rows / of:,.0f}") for name, of in seconds.items()]
    print_table("Commands", ["command"], ("s", "pairs/s"), timed)


if __name__ == "__main__":
    command_line(main)
