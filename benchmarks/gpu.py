"""Measures the stages that use a GPU: translation, encoders and sentence models.

python -m benchmarks.gpu [--model DIR] [--sentence-model DIR] [--times N] [PART …]

Parts:

- `translation`: the job by size of its shards, and the engine without the job.
- `fairseq`: fairseq's own generator.
- `encoders`: `benchmarks.training` on the GPU.
- `sentences`: the scorer `sentence_similarity`, on any machine.
- `devices`: the job on eight simulated GPUs, on any machine.

If a GPU, model or library that a part needs is missing, the part is left out with a message.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Annotated, Any
from unittest import mock

import numpy as np
import pyarrow as pa
import typer

from benchmarks.back_translation import bleu, compare, through_job
from benchmarks.measure import MODEL, Measured, command_line, in_turns, read_side
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.translations import TranslatorFactory
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.nmt import NmtOptions, Translator, gpu
from paraloom.models.nmt.gpu_processes import GpuProcesses
from paraloom.models.nmt.translate import batches_by_class
from paraloom.models.scorers import PairScorer

SHARDS = (1_000, 10_000)  # rows per shard
STREAMS = (4, 8)
TOKENS = (8_192, 32_768)  # tokens per batch


def captions(times: int) -> pa.Table:
    """Return Multi30k's training captions, repeated `times` times, in the schema of `ingest`."""
    sides = [read_side(language) * times for language in ("cs", "en")]
    return pa.table([[str(i) for i in range(len(sides[0]))], *sides], schema=schema.INGEST)


def require_gpu() -> None:
    """Raise a `UserError` if there is no GPU."""
    if not gpu.devices():
        raise UserError("CTranslate2 finds no CUDA device")


def translation(measured: Measured, model: str, times: int) -> None:
    """Measure the engine by number of streams and batch size, and the job by size of its shards."""
    require_gpu()
    table = captions(times)
    source = table["source"].to_pylist()
    for streams in STREAMS:
        gpu.STREAMS = streams
        translator = Translator(model, NmtOptions())
        engine, sources = translator._engine, translator._sources(source[::3])
        for tokens in TOKENS:
            numbers = range(len(sources))
            batches = list(batches_by_class(numbers, sources, tokens, engine.batch_rows))
            started = time.monotonic()
            waiting = [engine.submit([sources[row] for row in batch]) for batch in batches]
            for wait in waiting:
                wait()
            rate = len(sources) / (time.monotonic() - started)
            measured.add(f"engine alone, {streams} streams, {tokens:,} tokens: sentences/s", rate)
        del translator, engine
    exact: pa.Table | None = None
    for kind, rows in (("float32", SHARDS[-1]), *(("auto", rows) for rows in SHARDS)):
        options = NmtOptions.of({"compute_type": kind})
        made, seconds = through_job(table, model, options, rows=rows)
        exact = made if exact is None else exact
        job = f"job, {kind}, shards of {rows:,}"
        measured.add(f"{job}: sentences/s", len(source) / seconds)
        measured.add(f"{job}: BLEU", bleu(made))
        measured.add(f"{job}: same text as float32, %", 100 * compare(exact, made)[0])


def fairseq(measured: Measured, model: str) -> None:
    """Measure fairseq's own generator on the same sentences, in batches of 32,768 tokens."""
    require_gpu()
    import torch
    from fairseq.sequence_generator import SequenceGenerator

    from paraloom.models.nmt.families.fairseq import FairseqModel

    loaded = FairseqModel(Path(model)).load()
    translator = Translator(model, NmtOptions(device="cpu"), threads=1)
    sources = translator._sources(captions(1)["source"].to_pylist())
    for kind in (torch.float32, torch.float16):
        network = loaded.network.to("cuda", kind).eval()
        search = SequenceGenerator([network], loaded.target, beam_size=12, max_len_b=399)
        started = time.monotonic()
        for rows in batches_by_class(range(len(sources)), sources, 32_768, gpu.MOST_ROWS):
            ids = [
                torch.tensor([*map(loaded.source.index, sources[row]), loaded.source.eos()])
                for row in rows
            ]
            width = max(map(len, ids))
            tokens = torch.full((len(ids), width), loaded.source.pad())
            for row, of in enumerate(ids):
                tokens[row, width - len(of) :] = of
            lengths = torch.tensor([len(of) for of in ids])
            given = {"src_tokens": tokens.cuda(), "src_lengths": lengths.cuda()}
            with torch.inference_mode():
                search.generate([], {"net_input": given})
        rate = len(sources) / (time.monotonic() - started)
        measured.add(f"fairseq's generator, {str(kind)[6:]}: sentences/s", rate)


def encoders(measured: Measured) -> None:
    """Measure training steps of the encoders against the plain procedure."""
    from benchmarks import training

    require_gpu()
    training.measure(measured, 200, "cuda")


def sentences(measured: Measured, model: str | None, count: int, times: int) -> None:
    """Measure `sentence_similarity` of neighbouring captions against sentence-transformers."""
    from paraloom.models.scorers.learned.sentence_similarity import open_sentence_model
    from paraloom.models.sentence_models import load_sentence_model

    if not model:
        raise UserError("give --sentence-model")
    folder = Path(model)
    library, models = load_sentence_model(folder), {"auto": open_sentence_model(folder)}
    device = library.device.type
    if device == "cpu":
        models["int8"] = open_sentence_model(folder, "int8")
    texts = captions(1)["reference"].combine_chunks()[:count]
    distinct = texts.unique().to_pylist()
    batch_size = 256 if device == "cuda" else 32
    runs: dict[str, Callable[[], Any]]
    runs = {"library": partial(library.encode, distinct, batch_size=batch_size)}
    for kind, opened in models.items():
        scorer = PairScorer(["sentence_similarity"], sentence_model=opened)
        runs[kind] = partial(scorer.score, texts[:-1], texts[1:])
    library.encode(distinct[:100])
    timed, results = in_turns(runs, times)
    seconds = {name: of.sum(axis=0) for name, of in timed.items()}
    for name, (clock, spent) in seconds.items():
        encoded = len(distinct) * times
        measured.add(f"{name}, {device}: texts/s", encoded / clock)
        measured.add(f"{name}, {device}: texts per CPU second", encoded / spent)
        if name != "library":
            what = f"{name} against the library, {device}"
            measured.ratio(f"{what}: wall-clock time", seconds["library"][0], clock)
            measured.ratio(f"{what}: CPU time", seconds["library"][1], spent)
    if "int8" in models:
        ranks = (results[kind]["sentence_similarity"].argsort().argsort() for kind in models)
        exact, rounded = (10 * rank // len(rank) for rank in ranks)
        share = 100 * float((exact != rounded).mean())
        measured.add("int8: % of pairs in another decile than in float32", share)


GPUS, CORES = 8, 16  # numbers of GPUs and cores that `devices` simulates
MEASURED = 3_500
"""Sentences/s of an H200 with a transformer of 6+6 layers of 512 units, beam 12."""


def devices(measured: Measured, model: str, times: int, rate: float | None) -> None:
    """Measure the job on eight simulated GPUs. Each GPU sleeps as long as an H200 would take.

    On a machine with fewer than `CORES` cores, the simulated GPUs are slower in proportion.
    """
    rate = rate or MEASURED * min(cores(), CORES) / CORES
    rows, table = SHARDS[0], captions(4 * times)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        loading = partial(made_up_gpu, model, rate, str(folder))
        patch = mock.patch.object(
            TranslatorFactory, "open_each", lambda *_: GpuProcesses(loading, range(GPUS))
        )
        stack.enter_context(patch)
        through_job(table, model, NmtOptions(), rows=rows, workers=1)
        busy = np.stack([np.load(path) for path in folder.glob("busy-*.npy")])
    took = busy[:, 2].max() - busy[:, 1].min()
    share = f"{GPUS} simulated GPUs of {rate:,.0f} sentences/s, shards of {rows:,}"
    measured.add(f"{share}: sentences/s", len(table) / took)
    measured.add(f"{share}: % of the time busy, the least", 100 * busy[:, 0].min() / took)
    measured.add(f"{share}: % of the time busy, the mean", 100 * busy[:, 0].mean() / took)


def made_up_gpu(model: str, rate: float, folder: str, number: int) -> Translator:
    """Open a translator on a simulated GPU, which sleeps and returns the sources.

    The simulated GPU writes three numbers to a file: its busy seconds, the time at which its first
    batch began, and the time at which its last batch ended.
    """
    import ctranslate2

    gpu.chosen = lambda options: [0]
    gpu.memory = lambda device: 139 << 30
    gpu.precision = lambda *_: "float16"
    path = Path(folder, f"busy-{number}.npy")
    times = np.lib.format.open_memmap(path, "w+", float, (3,))
    busy = Lock()

    class Sleeping:
        """A stand-in for CTranslate2's translator, with streams that sleep."""

        def __init__(self, path: str, **_: Any) -> None:
            self.pool = ThreadPoolExecutor(gpu.STREAMS)

        def translate_batch(self, batch: list[list[str]], *_: Any, **__: Any) -> list[Future[Any]]:
            results: list[Future[Any]] = [Future() for _ in batch]

            def decode() -> None:
                started, seconds = time.time(), len(batch) / rate * gpu.STREAMS
                time.sleep(seconds)
                with busy:
                    times[0] += seconds / gpu.STREAMS
                    times[1] = times[1] or started
                    times[2] = time.time()
                for result, pieces in zip(results, batch, strict=True):
                    hypotheses = [[*pieces, "</s>"]]
                    result.set_result(SimpleNamespace(hypotheses=hypotheses, scores=(-1.0,)))

            self.pool.submit(decode)
            return results

    ctranslate2.Translator = Sleeping
    return Translator(model, NmtOptions())


def main(
    parts: Annotated[list[str] | None, typer.Argument(metavar="PART")] = None,
    model: str = MODEL,
    sentence_model: str | None = None,
    captions: Annotated[
        int, typer.Option("--sentences", help="Captions for `sentences`.")
    ] = 29_000,
    times: Annotated[int, typer.Option(help="Repeats of the 29,000 captions.")] = 2,
    rate: Annotated[float | None, typer.Option(help="Sentences/s of a simulated GPU.")] = None,
) -> None:
    """Measure and print."""
    measured = Measured("On this machine's GPU, beam 12")
    runs = {
        "translation": partial(translation, measured, model, times),
        "fairseq": partial(fairseq, measured, model),
        "encoders": partial(encoders, measured),
        "sentences": partial(sentences, measured, sentence_model, captions, times),
        "devices": partial(devices, measured, model, times, rate),
    }
    if unknown := set(parts or ()) - set(runs):
        raise UserError(f"no part {', '.join(sorted(unknown))}; there are {', '.join(runs)}")
    for part in parts or runs:
        try:
            runs[part]()
        except (UserError, ImportError) as error:
            print(f"gpu: {part} left out: {error}")
    measured.done("gpu")


if __name__ == "__main__":
    command_line(main)
