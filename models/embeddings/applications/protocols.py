"""Two protocols for the same data: the papers' by data set, and the MTEB benchmark's.

MTEB (mteb 2.26, main score `cosine_spearman`) takes the test pairs of a year as one set. Its STS12
has all five sets, its STS13 leaves out SMT, its STS17 is the pair of languages en-en, its
STSBenchmark is the test split, and its SICK-R has the pairs of all three SICK files.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paraloom.models.embeddings.datasets.similarity import SEMEVAL, STS_BENCHMARK, LabelledPairs

PROTOCOLS = {
    "papers": "The papers' protocol: Pearson × 100; of a year, the unweighted mean over its sets",
    "mteb": "MTEB's protocol: Spearman of the cosines × 100; all pairs of a year as one set",
}

_PAIRS = {
    **{"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186, "STS17": 250},
    **{"STSBenchmark": 1379, "SICK-R": 9927},
}
_NOT_IN_MTEB = {"STS 2013": {"SMT"}}


class Benchmark(NamedTuple):
    """What has one result by each protocol: a year of STS, the STS Benchmark, SICK."""

    name: str
    papers: list[int]  # numbers of the data sets whose results are averaged
    mteb: list[int]  # numbers of the data sets that are pooled
    pairs: int  # of the pooled sets
    task: str  # of MTEB

    @property
    def complete(self) -> bool:
        """Whether there are as many pooled pairs as MTEB's task has."""
        return self.pairs == _PAIRS[self.task]


def benchmarks(data: Sequence[LabelledPairs]) -> list[Benchmark]:
    """The benchmarks among these data sets, in their order. Training sets are not among them.

    Of the STS Benchmark and of SICK, the test set counts where it is there, else the development
    (trial) set.
    """
    found = []
    for group in dict.fromkeys(pairs.group for pairs in data):
        sets = {pairs.name: i for i, pairs in enumerate(data) if pairs.group == group}
        for name, papers, mteb, task in _of_group(group, sets):
            pairs = sum(len(data[i]) for i in mteb)
            found.append(Benchmark(name, papers, mteb, pairs, task))
    return found


def _of_group(group: str, sets: dict[str, int]) -> Iterator[tuple[str, list[int], list[int], str]]:
    year = group.removeprefix("STS ")
    if year in SEMEVAL:
        names = set(SEMEVAL[year]) - _NOT_IN_MTEB.get(group, set())
        pooled = [i for name, i in sets.items() if name in names]
        if pooled:
            yield group, list(sets.values()), pooled, f"STS{year[2:]}"
    elif group == "SICK":
        if tested := _first(("test", "trial"), sets):
            all_three = list(sets.values()) if len(sets) == 3 else [sets[tested]]
            yield f"SICK {tested}", [sets[tested]], all_three, "SICK-R"
    elif tested := _first(("sts-test", "sts-dev"), sets):
        sets_of_it = [sets[tested]]
        yield f"STS Benchmark {STS_BENCHMARK[tested]}", sets_of_it, sets_of_it, "STSBenchmark"


def _first(names: Sequence[str], sets: dict[str, int]) -> str | None:
    return next((name for name in names if name in sets), None)
