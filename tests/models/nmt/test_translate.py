import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paraloom.models.nmt import NmtOptions, Translator, translate
from paraloom.models.nmt.engine import Hypothesis, Pieces, Ranked, length_class
from paraloom.models.nmt.families.fairseq import SENTENCEPIECE, FairseqModel
from paraloom.models.nmt.families.subwords import load_sentencepiece
from paraloom.models.nmt.options import SamplingOptions
from paraloom.models.nmt.translate import SCHEMA, batches_by_class, batches_by_tokens
from tests.run_helpers import Patch

from .conftest import toy_pairs

SAMPLED = NmtOptions(candidates=3, batch_tokens=64, sampling=SamplingOptions())


def test_translations_are_those_of_fairseq(nmt_model: Path, czech: list[str]) -> None:
    """Of its own beam search, a sentence at a time."""
    from fairseq.sequence_generator import SequenceGenerator

    loaded = FairseqModel(nmt_model).load()
    search = SequenceGenerator(
        [loaded.network], loaded.target, beam_size=12, max_len_a=0, max_len_b=399
    )
    translator = Translator(nmt_model, threads=2)
    rows, counters = translator.translate(czech[:24])
    assert rows.schema == SCHEMA
    ties = 0  # of two translations that are equally probable, either is right
    for row, pieces in zip(rows.to_pylist(), translator._sources(czech[:24]), strict=True):
        ids = [*(loaded.source.index(piece) for piece in pieces), loaded.source.eos()]
        given = {"src_tokens": torch.tensor([ids]), "src_lengths": torch.tensor([len(ids)])}
        with torch.inference_mode():
            best = search.generate([], {"net_input": given})[0][0]
        made = [loaded.target[number] for number in best["tokens"].tolist()[:-1]]
        assert row["reason"] is None
        assert row["translation_score"] == pytest.approx(float(best["score"]), abs=5e-3)
        if row["translation"] == translator._subwords.decode(made):
            assert row["translation_subwords"] == len(made) + 1
        else:
            ties += 1
    assert ties <= 1
    assert (counters.sentences, counters.rejects, counters.retries) == (24, 0, 0)
    assert counters.tokens == sum(rows["translation_subwords"].to_pylist())


def test_an_endless_text_has_the_largest_number_of_subwords(toy_model: Path) -> None:
    """SentencePiece normalises one of these characters to `a.m.`, so there are 4 subwords each."""
    translator = Translator(toy_model, threads=1)
    endless = "\u33c2" * 20_000  # the most characters that a chat model's answer may have
    assert translator.subwords_of(["a man", endless])[1] == 32_767
    assert np.isnan(translator.score(["pes"], [endless])).all()


def test_threads_do_not_change_values(toy_model: Path) -> None:
    sources, _ = toy_pairs()
    for options in (NmtOptions(batch_tokens=60), NmtOptions(compute_type="int8", batch_tokens=60)):
        one, _ = Translator(toy_model, options, threads=1).translate(sources)
        three, _ = Translator(toy_model, options, threads=3).translate(sources)
        assert one.equals(three)


def test_rows_keep_their_order(toy_model: Path) -> None:
    sources, _ = toy_pairs()
    translator = Translator(toy_model, threads=2)
    forward, _ = translator.translate(pa.array(sources))
    backward, _ = translator.translate(pa.chunked_array([sources[:0:-1], sources[:1]]))
    assert forward["translation"].to_pylist() == backward["translation"].to_pylist()[::-1]
    again, _ = translator.translate(sources)
    assert again.equals(forward)
    none, counters = translator.translate([])
    assert none.schema == SCHEMA
    assert (none.num_rows, counters.batches) == (0, 0)


def test_what_cannot_be_translated_is_rejected_with_a_reason(toy_model: Path) -> None:
    translator = Translator(toy_model, NmtOptions(max_source_subwords=20), threads=1)
    good, long = ["Muž vidí dům.", "Pes nese vodu."], "Muž vidí dům. " * 20
    rows, counters = translator.translate([good[0], long, "", None, "  ", good[1]])
    texts, scores, lengths, reasons = (rows[name].to_pylist() for name in SCHEMA.names)
    alone = translator.translate(good)[0]["translation"].to_pylist()
    assert texts == [alone[0], *[None] * 4, alone[1]] and len({*alone}) == 2
    assert [score is None for score in scores] == [text is None for text in texts]
    assert [length is None for length in lengths] == [text is None for text in texts]
    assert reasons[0] is reasons[5] is None
    assert reasons[1] == "source of more than 20 subwords"
    assert reasons[2:5] == ["empty source"] * 3
    assert counters.rejects == 4


class Echo:
    """An engine that gives sources back, and fails where it is told to."""

    device, compute_type, converted = "cpu", "float32", ""
    batch_tokens, batch_rows = 40, 1000
    max_source_subwords = 100
    parallel, gpus = 3, 0

    def __init__(self, poison: Callable[[Sequence[Pieces]], bool]) -> None:
        self.poison = poison
        self.sizes: list[int] = []

    def submit(self, batch: Sequence[Pieces], count: int = 1) -> Callable[[], list[Ranked]]:
        self.sizes.append(len(batch))

        def wait() -> list[Ranked]:
            if self.poison(batch):
                raise RuntimeError("CUDA failed with error out of memory\nin line 3")
            return [[Hypothesis(list(pieces), -1.0, len(pieces) + 1, True)] for pieces in batch]

        return wait

    def check(self) -> None:
        """It works on anything else."""


def translator_with(engine: Echo, folder: Path, monkeypatch: Patch) -> Translator:
    monkeypatch.setattr(translate, "Engine", lambda *_: engine)
    return Translator(folder)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bad=st.sets(st.integers(0, 59), max_size=6))
def test_a_failing_sentence_is_isolated(toy_model: Path, monkeypatch: Patch, bad: set[int]) -> None:
    sources = toy_pairs()[0][:60]
    subwords = load_sentencepiece(toy_model / SENTENCEPIECE)
    poisonous = {tuple(subwords.encode(sources[row], out_type=str)) for row in bad}
    engine = Echo(lambda batch: any(tuple(pieces) in poisonous for pieces in batch))
    rows, counters = translator_with(engine, toy_model, monkeypatch).translate(sources)
    failed = "engine failed: RuntimeError: CUDA failed with error out of memory in line 3"
    for number, row in enumerate(rows.to_pylist()):
        expected = (None, failed) if number in bad else (sources[number], None)
        assert (row["translation"], row["reason"]) == expected
    assert counters.rejects == len(bad)
    assert (counters.retries > 0) == bool(bad)
    assert counters.batches == len(engine.sizes)


def test_a_sentence_that_fails_once_is_not_rejected(toy_model: Path, monkeypatch: Patch) -> None:
    failures = iter([True])
    engine = Echo(lambda batch: next(failures, False))
    rows, counters = translator_with(engine, toy_model, monkeypatch).translate(["Muž vidí dům."])
    assert rows["translation"].to_pylist() == ["Muž vidí dům."]
    assert counters.retries == 1


def made_by(translator: Translator, monkeypatch: Patch) -> list[tuple[Pieces, Hypothesis]]:
    """Gets what the engine makes of each source."""
    made: list[tuple[Pieces, Hypothesis]] = []
    submit = translator._engine._submit

    def spied(engine: Any, batch: Sequence[Pieces], *more: Any) -> Callable[[], list[Ranked]]:
        wait = submit(engine, batch, *more)

        def waiting() -> list[Ranked]:
            found = wait()
            pairs = zip(batch, found, strict=True)
            made.extend((source, one) for source, ranked in pairs for one in ranked)
            return found

        return waiting

    monkeypatch.setattr(translator._engine, "_submit", spied)
    return made


def no_sequence_twice(pieces: Pieces, n: int) -> bool:
    grams = [tuple(pieces[at : at + n]) for at in range(len(pieces) - n + 1)]
    return len(grams) == len(set(grams))


@pytest.mark.parametrize(
    "options",
    [
        NmtOptions(beam=4, no_repeat_ngram=2),
        NmtOptions(beam=4, no_repeat_ngram=1, candidates=3),
        NmtOptions(beam=4, repetition_penalty=1.5, candidates=3),
        SAMPLED.replace(no_repeat_ngram=2, repetition_penalty=1.5),
    ],
)
def test_nothing_repeats_and_scores_are_the_models_own(
    nmt_model: Path, czech: list[str], monkeypatch: Patch, options: NmtOptions
) -> None:
    """Those of the search are of the probabilities that the options have changed."""
    translator = Translator(nmt_model, options, threads=2)
    engine, n, sources = translator._engine, options.candidates, [*czech[:23], ""]
    engine._decoding["min_decoding_length"] = 20  # so that a model wants to repeat
    made = made_by(translator, monkeypatch)
    rows, counters = translator.translate(sources)
    assert len(made) == 23 * n
    assert engine._decoding["repetition_penalty"] == options.repetition_penalty
    if size := options.no_repeat_ngram:
        assert all(no_sequence_twice(hypothesis.pieces, size) for _, hypothesis in made)
    own: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for source, hypothesis in sorted(made, key=lambda pair: -pair[1].score):
        (score,) = engine.score([source], [hypothesis.pieces])
        text = translator._subwords.decode(hypothesis.pieces).strip()
        own.setdefault(tuple(source), []).append((text, score))
    for at, source in enumerate(translator._sources(sources)[:-1]):
        found = [row for row in rows.slice(at * n, n).to_pylist() if row["reason"] is None]
        expected = own[tuple(source)]
        if len(found) == len(expected):  # all have ended
            assert [row["translation"] for row in found] == [text for text, _ in expected]
            scores = [row["translation_score"] for row in found]
            np.testing.assert_allclose(scores, [score for _, score in expected], atol=1e-4)
    assert rows["reason"].to_pylist()[-n:] == ["empty source"] * n
    assert counters.tokens == sum(filter(None, rows["translation_subwords"].to_pylist()))


class Hints:
    """What earlier tries left; remembers the rows that the engine got."""

    def __init__(self, smaller: int = 1) -> None:
        self.smaller = smaller
        self.noted: list[list[int]] = []

    def under_way(self, rows: Sequence[int]) -> None:
        self.noted.append(list(rows))


def test_a_try_after_a_death_has_the_same_batches(toy_model: Path, monkeypatch: Patch) -> None:
    """And says which; after further deaths smaller ones, down to single sentences."""
    sources = toy_pairs()[0][:60]
    engine = Echo(lambda batch: False)
    translator = translator_with(engine, toy_model, monkeypatch)
    first, _ = translator.translate(sources)
    before = max(engine.sizes)
    for smaller, most in ((1, before), (4, before // 2), (1_000, 1)):
        engine.sizes, hints = [], Hints(smaller)
        assert translator.translate(sources, hints)[0].equals(first)
        assert engine.sizes == [len(rows) for rows in hints.noted]
        assert max(engine.sizes) <= most
        assert sorted(row for rows in hints.noted for row in rows) == list(range(60))


def test_samples_after_a_death_are_those_without(nmt_model: Path, czech: list[str]) -> None:
    translator = Translator(nmt_model, SAMPLED, threads=1)
    first, _ = translator.translate(czech)
    assert translator.translate(czech, Hints())[0].equals(first)


TOO_LONG = "translation does not end within 78 subwords, the limit for sources of up to 16"


@pytest.mark.parametrize(
    ("hypothesis", "reason"),
    [
        (Hypothesis([], -1.0, 1, True), "empty translation"),
        (Hypothesis(["▁"], -1.0, 2, True), "empty translation"),
        (Hypothesis(["▁a"], -1.0, 78, False), TOO_LONG),
        (Hypothesis(["▁a"], math.nan, 2, True), "translation score is nan"),
    ],
)
def test_a_useless_translation_is_rejected(
    toy_model: Path, monkeypatch: Patch, hypothesis: Hypothesis, reason: str
) -> None:
    engine = Echo(lambda batch: False)
    monkeypatch.setattr(engine, "submit", lambda batch, count=1: lambda: [[hypothesis]])
    rows, _ = translator_with(engine, toy_model, monkeypatch).translate(["Muž."])
    assert rows.to_pylist() == [{**dict.fromkeys(SCHEMA.names), "reason": reason}]


@given(lengths=st.lists(st.integers(1, 30), max_size=60), budget=st.integers(1, 100))
def test_batches_hold_every_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    sources = [["a"] * length for length in lengths]
    batches = list(batches_by_tokens(range(len(lengths)), sources, budget))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= budget
    flat = [lengths[row] for batch in batches for row in batch]
    assert flat == sorted(flat, reverse=True)


@given(
    lengths=st.lists(st.integers(1, 70), max_size=60),
    budget=st.integers(1, 300),
    most=st.integers(1, 9),
)
def test_a_batch_has_sources_of_one_class(lengths: list[int], budget: int, most: int) -> None:
    sources = [["a"] * length for length in lengths]
    batches = list(batches_by_class(range(len(lengths)), sources, budget, most))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= most
        assert len({length_class(lengths[row]) for row in batch}) == 1


def test_the_limit_of_a_translation_is_its_sources_own(nmt_model: Path, czech: list[str]) -> None:
    """A model that has seen little repeats itself: the limit decides what is accepted."""
    odd = ["xyz " * 5, "q" * 12, *(f"{text} " * 3 for text in czech[:6]), *czech[:6]]
    for options in (NmtOptions(beam=1), NmtOptions(beam=4, candidates=2)):
        translator = Translator(nmt_model, options, threads=1)
        together = translator.translate(odd)[0].to_pylist()
        n = options.candidates
        for row, text in enumerate(odd):
            alone = translator.translate([text])[0].to_pylist()
            for one, other in zip(alone, together[n * row : n * row + n], strict=True):
                assert one["translation"] == other["translation"]
                assert one["reason"] == other["reason"]
                assert one["translation_score"] == pytest.approx(
                    other["translation_score"], abs=1e-5
                )
        for source, made in zip(translator._sources(odd), together[::n], strict=True):
            subwords = made["translation_subwords"] or 0
            assert subwords <= 3 * max(2 * len(source), 16) + 30
