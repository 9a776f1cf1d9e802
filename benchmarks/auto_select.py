"""The gain from `select.by: auto`. python -m benchmarks.auto_select [--run FOLDER] …

Trains the run's encoder on the selected corpus, on the same number of random pairs, and on all
pairs, and evaluates the three encoders. The labelled pairs of the run must come from STS 2012–2014
only: STS 2015 is the test set here. Finished cells are cached in --folder.
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from benchmarks.experiments.cells import Cell, Inputs, folder_of, write_pairs
from benchmarks.experiments.report import show, write
from benchmarks.experiments.tables import Claim, Table
from benchmarks.experiments.training import train
from benchmarks.report import DATA, ROOT, command_line
from paraloom.beam_jobs.engine.shards import read_shard, receipts
from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.criteria import Criteria, preview
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.pipeline.pages.describe import trial_name
from paraloom.pipeline.run.folder import read_run
from paraloom.pipeline.run.records import AutoSelectRecord


def main(
    run: Path = ROOT / "runs" / "multi30k",
    data: Annotated[Path, typer.Option(help="Folder with sts and sick.")] = DATA,
    folder: Path = ROOT / "runs" / "experiments",
    seeds: int = 3,
    workers: int = cores(),
) -> None:
    """Write the training pairs, train missing cells, print and write the table."""
    inputs = Inputs.of(data, corpus=run / "corpus", folder=folder)
    table = prepare(run, inputs, seeds)
    scores = train({"auto_select": table}, seeds, inputs, workers)
    show(table, scores)
    write(inputs.folder / "auto_select.md", table, scores)


def prepare(run: Path, inputs: Inputs, seeds: int) -> Table:
    """Write the training pairs of every cell; return the table of the cells.

    Raises:
        UserError: the run has no finished automatic selection.
    """
    record = read_run(str(run))
    found, config = record.find(AutoSelectRecord), record.config
    if found is None or "select" not in record.stages:
        raise UserError(
            f"{run}: no finished run with select.by: auto; run "
            "`paraloom select --config … --set select.by=auto`"
        )
    encoder = config.embeddings.replace(device="cpu")
    rows = {
        f"chosen: {trial_name(found.chosen)}": Cell(options=encoder, pairs="chosen"),
        "as many pairs at random": Cell(options=encoder, pairs="random"),
        "all pairs": Cell(options=encoder, pairs="all"),
    }
    bucket = [shard for receipt in receipts(str(run / "bucket")) for shard in receipt.shards]
    corpus = [shard for receipt in receipts(str(run / "corpus")) for shard in receipt.shards]
    texts = ["reference", "translation"]
    chosen = pa.concat_tables([read_shard(shard, texts) for shard in corpus])
    criteria = Criteria(
        by="",
        deciles=None,
        max_tokens=config.select.max_tokens,
        size=None,
        seed=config.seed,
        where=tuple(map(Predicate.parse, config.select.where)),
    )
    fit = preview(bucket, criteria)
    everything = pa.concat_tables(
        read_shard(shard, texts).take(pa.array(fit.rows[fit.units == unit]))
        for unit, shard in enumerate(bucket)
    )
    for seed in range(1, seeds + 1):
        drawn = np.random.default_rng(seed).permutation(len(everything))[: len(chosen)]
        random = everything.take(pa.array(np.sort(drawn)))
        pairs = {"chosen": chosen, "random": random, "all": everything}
        for cell in rows.values():
            write_pairs(folder_of(cell, seed, inputs), pairs[cell.pairs])
    better, worse, _ = rows
    title = f"An encoder on {len(chosen):,} chosen pairs of {len(everything):,}"
    return Table(title, rows, [Claim(better, worse)])


if __name__ == "__main__":
    command_line(main)
