"""Measures how many planted evaluation sentences `select.exclude` finds.

python -m benchmarks.planted_leaks [ROWS] [--workers N] [--planted N] [--model NAME]

Planted texts replace translations in a run of generated pairs. Most planted texts are sentences of
STS and SICK, unchanged or changed in one of several ways. Sentences of the transfer tasks measure
false alarms. With `--model`, the cosines of planted texts with evaluation sentences are measured,
too. PARALOOM_DATA names the folder of the data.
"""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from benchmarks import generated, scale
from benchmarks.measure import DATA, command_line, cost, paraloom, print_table
from paraloom.beam_jobs.engine.shards import read_shard, receipts
from paraloom.beam_jobs.transforms.equal_texts import normalised
from paraloom.beam_jobs.transforms.exclusion import RULES, embed
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


def found_rows(run: Path, kinds: dict[str, str]) -> Counter[str]:
    """Count the rows that leak a sentence by kind. `kinds` has the kinds of planted rows by id."""
    counts: Counter[str] = Counter()
    for receipt in receipts(str(run / "corpus")):
        for shard in receipt.rejected_shards:
            for row in read_shard(shard, ["id", "reason"]).to_pylist():
                if any(f" ({rule}), row " in row["reason"] for rule in RULES):
                    counts[kinds.get(row["id"], GENERATED)] += 1
    return counts


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
    """Measure and print a table."""
    sentences, leaks = texts(DATA, planted)
    kinds = [kind for kind, of_kind in leaks.items() for _ in of_kind]
    entries = [{"translation": text} for of_kind in leaks.values() for text in of_kind]
    changes = generated.planted(entries, rows)
    kind_of = {f"generated-{row}": kind for row, kind in zip(changes, kinds, strict=True)}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = scale.make_run(folder, rows, 10_000, changes)
        (folder / "evaluation.txt").write_text("".join(f"{text}\n" for text in sentences))
        keys = ("deciles=null", "where=[]", "max_tokens=null", "size=null")
        exclude = f"exclude=['{folder / 'evaluation.txt'}']"
        options = [f"--set=select.{key}" for key in (*keys, exclude)]
        command = paraloom("select", f"--config={config}", *options, workers=workers)
        cost(command, log=folder / "log.txt")
        counts = found_rows(folder / "run", kind_of)
    shares = similar(sentences, leaks, model) if model else {}
    sizes = {**Counter(kinds), GENERATED: rows - len(kinds)}
    shown = [
        (kind, f"{n:,}", f"{counts[kind] / n:.2%}", *(f"{x:.1%}" for x in shares.get(kind, [])))
        for kind, n in sizes.items()
    ]
    bounds = [f"cosine > {bound}" for bound in BOUNDS] if shares else []
    print_table(f"{rows:,} pairs", ["planted"], ("rows", "found", *bounds), shown)


if __name__ == "__main__":
    command_line(main)
