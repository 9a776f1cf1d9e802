"""A deep encoder with a shallow decoder against equal depths: BLEU and decoding speed.

python -m benchmarks.decoder_depth [--config FILE] [--folder DIR] [--updates N N] [--rounds N]

The shallow decoder needs more updates for the same BLEU. Both models are trained on the input of
the configuration, the sample by default, unless the folder has them from an earlier call. One
thread decodes, and its processor time is measured: unlike the wall-clock time, it hardly depends
on other load on the machine.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import sacrebleu
import typer

from benchmarks.report import Measured, command_line
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.nmt.train import train_nmt
from paraloom.models.nmt.training_data import HeldOut, hold_out
from paraloom.models.nmt.translate import Translator
from paraloom.pipeline.cli import main as paraloom
from paraloom.pipeline.config.read import read_config

DEPTHS = ((3, 3), (6, 1))
"""Layers of encoder and decoder in two models; the second is compared with the first."""
UPDATES = (600, 980)
"""Training updates of each model, after which both have the same BLEU on the sample."""


def input_files(config: str, folder: Path) -> list[Path]:
    """The pairs of the configuration's input, read once."""
    status = paraloom(["ingest", "--config", config, "--set", f"run={folder / 'run'}"])
    if status:
        sys.exit(status)
    return sorted((folder / "run" / "ingest").glob("part-*.parquet"))


def measure(model: Path, held_out: HeldOut, beam: int) -> tuple[float, float]:
    """BLEU on the half of the held-out pairs that did not choose a checkpoint; sentences/s on a
    core."""
    half = len(held_out.sources) // 2
    sources, references = held_out.sources[half:], held_out.references[half:]
    translator = Translator(model, NmtOptions(beam=beam, device="cpu"), threads=1)
    translator.translate(sources[:20])
    started = time.process_time()
    rows, _ = translator.translate(sources)
    seconds = time.process_time() - started
    found = [text or "" for text in rows["translation"].to_pylist()]
    return float(sacrebleu.corpus_bleu(found, [references]).score), len(sources) / seconds


def main(
    config: str = "sample",
    folder: Annotated[Path | None, typer.Option(help="Keep the models in this folder.")] = None,
    updates: Annotated[tuple[int, int], typer.Option(help="Of both models.")] = UPDATES,
    rounds: int = 3,
) -> None:
    """Train, measure and print."""
    with tempfile.TemporaryDirectory() as name:
        place = folder or Path(name)
        place.mkdir(parents=True, exist_ok=True)
        options = read_config(config)
        pairs = input_files(config, place)
        training = options.nmt.training
        held_out = hold_out(pairs, training.held_out)
        models = {}
        for (encoder, decoder), count in zip(DEPTHS, updates, strict=True):
            model = place / f"{encoder}+{decoder}-{count}"
            models[f"{encoder}+{decoder} layers, {count:,} updates"] = model
            if not model.is_dir():
                depths = {"encoder_layers": encoder, "decoder_layers": decoder}
                changed = {**depths, "updates": count}
                train_nmt(pairs, model, training.model_copy(update=changed), seed=options.seed)
        sentences = len(held_out.sources) // 2
        measured = Measured(f"Depths of encoder and decoder: {sentences} held-out pairs, one core")
        for beam in (12, 1):
            rates = dict.fromkeys(models, 0.0)
            for _ in range(rounds):  # in turns, since other load on the machine changes
                for what, model in models.items():
                    bleu, rate = measure(model, held_out, beam)
                    rates[what] += rate / rounds
                    measured.add(f"{what}, beam {beam}: BLEU", bleu)
            for what, rate in rates.items():
                measured.add(f"{what}, beam {beam}: sentences/s", rate)
            first, second = rates
            measured.ratio(f"{second}, beam {beam}, speed", rates[second], rates[first])
        measured.done("decoder_depth")


if __name__ == "__main__":
    command_line(main)
