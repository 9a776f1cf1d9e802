"""Measures time and diversity of several translations of a source, on Multi30k.

python -m benchmarks.candidates [--model DIR] [--sentences N] [--candidates N] [--rounds N]

One thread translates. CPU time is reported, because other programs hardly affect it.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa

from benchmarks.measure import MODEL, Measured, command_line, in_turns, read_side
from paraloom.beam_jobs.transforms.criteria import diverse_candidates
from paraloom.models.nmt.options import NmtOptions, SamplingOptions
from paraloom.models.nmt.translate import Translator
from paraloom.models.scorers import PairScorer

MAX_OVERLAP = 0.5
"""The default of `select.max_overlap`."""


def translate(translator: Translator, sources: Sequence[str]) -> pa.Table:
    """Return the accepted translations. The column `id` has the indices of their sources."""
    rows, _ = translator.translate(sources)
    count = len(rows) // len(sources)
    ids = [str(number) for number in range(len(sources)) for _ in range(count)]
    table = pa.table({"id": ids, "translation": rows["translation"]})
    return table.filter(rows["reason"].is_null())


def mean_overlap(texts: Sequence[Sequence[str]]) -> float:
    """Return the mean trigram overlap over all pairs of texts in the same group."""
    first, second = zip(*(pair for group in texts for pair in combinations(group, 2)), strict=True)
    scored = PairScorer(["trigram_overlap"]).score(pa.array(first), pa.array(second))
    return float(np.mean(scored["trigram_overlap"]))


def by_source(table: pa.Table) -> dict[str, list[str]]:
    """Return the translations of each source."""
    groups = table.group_by("id", use_threads=False).aggregate([("translation", "list")])
    return dict(
        zip(*(groups[name].to_pylist() for name in ("id", "translation_list")), strict=True)
    )


def measure_diversity(measured: Measured, name: str, table: pa.Table) -> None:
    """Compare the diverse translations of each source with the same number of best translations."""
    kept = diverse_candidates(table, MAX_OVERLAP)
    best, diverse = by_source(table), by_source(table.filter(pa.array(kept)))
    several = {id_: texts for id_, texts in diverse.items() if len(texts) > 1}
    as_many = [best[id_][: len(texts)] for id_, texts in several.items()]
    measured.add(f"{name}: diverse translations per source", float(kept.sum() / len(best)))
    measured.add(f"{name}: sources with several diverse, %", 100 * len(several) / len(best))
    measured.add(f"{name}: overlap of diverse", mean_overlap([*several.values()]))
    measured.add(f"{name}: overlap of the same number of best ones", mean_overlap(as_many))


def main(model: str = MODEL, sentences: int = 300, candidates: int = 4, rounds: int = 2) -> None:
    """Measure and print."""
    sources = read_side("cs", name="val")[:sentences]
    several, beam = candidates, 12
    sampling = SamplingOptions(top_k=10, temperature=1.0)
    choices = {
        "1 of the beam": NmtOptions(beam=beam),
        f"{several} of the beam": NmtOptions(beam=beam, candidates=several),
        f"{beam} of the beam": NmtOptions(beam=beam, candidates=beam),
        f"{several} samples": NmtOptions(candidates=several, sampling=sampling),
    }
    measured = Measured(f"Translations of {len(sources):,} sources, beam {beam}, one thread")
    runs = {}
    for name, choice in choices.items():
        translator = Translator(model, choice, threads=1)
        translator.translate(sources[:10])  # the first call also loads the model
        runs[name] = partial(translate, translator, sources)
    times, tables = in_turns(runs, rounds)
    seconds = {name: float(of[:, 1].mean()) for name, of in times.items()}
    one, *others = choices
    for name in choices:
        measured.add(f"{name}: CPU seconds", seconds[name])
    for name in others:
        measured.ratio(f"time of {name}", seconds[name], seconds[one])
        measure_diversity(measured, name, tables[name])
    measured.done("candidates")


if __name__ == "__main__":
    command_line(main)
