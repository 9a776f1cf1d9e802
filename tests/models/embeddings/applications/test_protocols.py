import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import pearsonr, spearmanr

from paraloom.models.embeddings.applications.evaluation import evaluate_on
from paraloom.models.embeddings.applications.protocols import benchmarks
from paraloom.models.embeddings.comparison import Embed, cosines
from paraloom.models.embeddings.datasets.similarity import LabelledPairs
from paraloom.models.errors import UserError


def pairs(group: str, name: str, rows: int = 4) -> LabelledPairs:
    text = pa.array([f"{name} {i}" for i in range(rows)])
    return LabelledPairs(
        group=group, name=name, first=text, second=text, scores=np.arange(rows, dtype=float)
    )


def test_what_each_protocol_counts() -> None:
    data = [
        pairs("STS 2012 train", "MSRpar"),
        *(pairs("STS 2013", name) for name in ("FNWN", "OnWN", "SMT", "headlines")),
        pairs("STS 2017", "track5.en-en", 250),
        *(pairs("stsb", name) for name in ("sts-dev", "sts-train")),
        *(pairs("SICK", name) for name in ("train", "trial")),
    ]
    year, track, stsb, sick = benchmarks(data)
    assert (year.name, year.task, year.papers, year.mteb) == (
        "STS 2013",
        "STS13",
        [1, 2, 3, 4],
        [1, 2, 4],
    )
    assert (track.task, track.pairs, track.complete) == ("STS17", 250, True)
    assert (stsb.name, stsb.papers, stsb.mteb, stsb.complete) == (
        "STS Benchmark dev",
        [6],
        [6],
        False,
    )
    assert (sick.name, sick.papers, sick.mteb) == ("SICK trial", [9], [9])


def test_mteb_has_all_pairs_of_sick_and_the_test_set_of_the_sts_benchmark() -> None:
    data = [pairs("SICK", name) for name in ("train", "trial", "test")]
    data += [pairs("b", "sts-dev"), pairs("b", "sts-test", 1379)]
    sick, stsb = benchmarks(data)
    assert (sick.name, sick.papers, sick.mteb) == ("SICK test", [2], [0, 1, 2])
    assert (stsb.name, stsb.papers, stsb.complete) == ("STS Benchmark test", [4], True)


def test_one_protocol_means_data_sets_and_the_other_pools_their_pairs(bag_of_words: Embed) -> None:
    random = np.random.default_rng(0)
    sets = []
    for name, rows in (("FNWN", 5), ("OnWN", 40), ("SMT", 12), ("headlines", 9)):
        sides = ([" ".join(random.choice(list("abcde"), 3)) for _ in range(rows)] for _ in "12")
        first, second = map(pa.array, sides)
        scores = random.random(rows) + rows
        sets.append(
            LabelledPairs(group="STS 2013", name=name, first=first, second=second, scores=scores)
        )
    report = evaluate_on(sets, [("words", bag_of_words)])
    found = [cosines(bag_of_words(each.first), bag_of_words(each.second)) for each in sets]
    labels = [each.scores for each in sets]
    pearsons = [pearsonr(*both).statistic for both in zip(found, labels, strict=True)]
    assert report.protocols["papers"] == [[pytest.approx(100 * np.mean(pearsons))]]
    counted = [0, 1, 3]  # without SMT
    pooled = spearmanr(*(np.concatenate([of[i] for i in counted]) for of in (found, labels)))
    assert report.protocols["mteb"] == [[pytest.approx(100 * pooled.statistic)]]


def test_the_cosine_counts_also_where_a_model_has_another_score(bag_of_words: Embed) -> None:
    from paraloom.models.embeddings.comparison import ComparedModel, dots

    text = pa.array(["a", "a b", "a b c", "d"])
    other = pa.array(["a", "a c", "a a a", "a"])
    data = LabelledPairs(
        group="STS 2014", name="images", first=text, second=other, scores=np.array([5.0, 3, 4, 0])
    )
    models = [ComparedModel("cosine", bag_of_words), ComparedModel("dot", bag_of_words, dots)]
    found = evaluate_on([data], models).protocols
    assert found["mteb"][0] == found["mteb"][1]
    assert found["papers"][0] != found["papers"][1]


def test_data_sets_need_names_of_their_own(bag_of_words: Embed) -> None:
    with pytest.raises(UserError, match="STS 2014 images: stands twice among the data sets"):
        evaluate_on([pairs("STS 2014", "images")] * 2, [("words", bag_of_words)])
