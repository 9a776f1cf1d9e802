"""Training of translation models with fairseq."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder
from paraloom.models.nmt import fairseq_run
from paraloom.models.nmt.families import fairseq
from paraloom.models.nmt.options import NmtOptions, NmtTrainingOptions
from paraloom.models.nmt.training_data import HeldOut, hold_out, prepare
from paraloom.models.printing import show
from paraloom.models.progress import meter
from paraloom.models.tracking import Board

REPORT = "training.json"
_FIGURES = ("loss", "nll_loss", "lr", "gnorm", "wps", "epoch")  # names in fairseq's log
_SETTINGS = Path(__file__).with_name("fairseq.yaml")  # settings that users cannot change


def train_nmt(
    pairs: Sequence[Path],
    folder: Path | str,
    options: NmtTrainingOptions | None = None,
    *,
    seed: int = 1,
    source_language: str = "cs",
    target_language: str = "en",
    threads: int | None = None,
) -> dict[str, Any]:
    """Train a transformer on pairs, and write a model folder.

    The checkpoints, and the average of the last checkpoints, are compared by their BLEU on half of
    the held-out pairs. The final BLEU is measured on the other half. An interrupted training starts
    from the beginning. On a CPU, the same arguments give the same weights.

    Args:
        pairs: Parquet files with the columns `id`, `source` and `reference`.
        folder: model folder, which is replaced when the new model is finished.
        threads: number of CPU cores; all by default.

    Returns:
        The content of `training.json` in the folder: BLEU of the model and of each checkpoint,
        counts, options, seed and versions.
    """
    options, threads = options or NmtTrainingOptions(), threads or cores()
    languages = (source_language, target_language)
    folder = Path(folder)
    work = folder.parent / f".{folder.name}.training"
    shutil.rmtree(work, ignore_errors=True)  # left over from a killed training
    data, candidate = work / "data", work / "candidate"
    data.mkdir(parents=True)

    held_out = hold_out(pairs, options.held_out)
    count = prepare(pairs, held_out, data, options, languages)
    board = Board(folder)
    _run_fairseq(work, options, languages, seed, threads, board)
    board.close()
    half = len(held_out.sources) // 2
    states, bleu = _candidates(work / "checkpoints", options.average or 3), {}
    for name, state in states.items():
        _assemble(candidate, data, state)
        bleu[name] = _bleu(candidate, held_out, slice(half), NmtOptions(beam=1), threads)
        shutil.rmtree(fairseq.FairseqModel(candidate).converted().path, ignore_errors=True)
    chosen = max(reversed(bleu), key=lambda name: bleu[name])  # the last model with the best BLEU
    *single, last = bleu.values()
    gained = last - max(single) if name.startswith("average") else None
    _assemble(candidate, data, states[chosen])
    held = {"held_out": len(held_out.sources), "choice": half}
    report: dict[str, Any] = {
        "bleu": _bleu(candidate, held_out, slice(half, None), NmtOptions(), threads),
        "chosen": chosen,
        "bleu_of_candidates": bleu,
        "gained_by_average": gained,
        "pairs": {"training": count, **held, "bleu": len(held_out.sources) - half},
        "options": options.model_dump(),
        "seed": seed,
        "versions": {name: version(name) for name in ("fairseq-fixed", "torch", "sentencepiece")},
    }
    with atomic_folder(folder) as new:
        _assemble(new, data, states[chosen])
        (new / REPORT).write_text(json.dumps(report, indent=1) + "\n")
    shutil.rmtree(work)
    show(f"{folder}: BLEU {report['bleu']:.1f} on {report['pairs']['bleu']} held-out pairs")
    if gained is not None:
        compared = f"{gained:+.1f} BLEU against the best checkpoint"
        show(f"average of checkpoints: {compared}, on the other {half} held-out pairs")
    return report


def _run_fairseq(
    work: Path,
    options: NmtTrainingOptions,
    languages: tuple[str, str],
    seed: int,
    threads: int,
    board: Board,
) -> None:
    data, binary, checkpoints = work / "data", work / "binary", work / "checkpoints"
    pair = {"source-lang": languages[0], "target-lang": languages[1]}
    settings = yaml.safe_load(_SETTINGS.read_text())
    preprocess: dict[str, object] = {
        **pair,
        **settings["preprocess"],
        "trainpref": data / "train",
        "srcdict": data / f"dict.{languages[0]}.txt",
        "destdir": binary,
        "workers": threads,
    }
    train: dict[str, object] = {
        **pair,
        **settings["train"],
        "label-smoothing": options.label_smoothing,
        "dropout": options.dropout,
        "lr": options.learning_rate,
        "warmup-updates": options.warmup,
        "max-update": options.updates,
        "max-tokens": options.batch_tokens,
        "seed": seed,
        "save-dir": checkpoints,
        "save-interval-updates": -(-options.updates // options.checkpoints),
    }
    layers = {"encoder": options.encoder_layers, "decoder": options.decoder_layers}
    for side, own in layers.items():
        train |= {
            f"{side}-layers": own or options.layers,
            f"{side}-embed-dim": options.dim,
            f"{side}-attention-heads": options.heads,
            f"{side}-ffn-embed-dim": options.ffn,
            f"{side}-normalize-before": None,
        }
    commands = [["preprocess", *_flags(preprocess)], ["train", str(binary), *_flags(train)]]
    (work / "commands.json").write_text(json.dumps(commands))
    _run_commands(work, threads, options.updates, board)


def _flags(options: dict[str, object]) -> list[str]:
    return [f"--{key}" if value is None else f"--{key}={value}" for key, value in options.items()]


def _run_commands(work: Path, threads: int, updates: int, board: Board) -> None:
    log = work / "fairseq.log"
    command = [sys.executable, "-P", str(fairseq_run.__file__), str(work / "commands.json")]
    environment = {
        "OMP_WAIT_POLICY": "PASSIVE",  # busy waiting would slow other processes
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
    }
    with (
        log.open("w", encoding="utf-8") as stream,
        meter("train-nmt", total=updates, unit="updates") as progress,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        last = ""
        try:
            for line in process.stdout:
                stream.write(line)
                stream.flush()
                last = line.strip() or last
                if line.startswith(fairseq_run.TO_USER):
                    progress.say(line.removeprefix(fairseq_run.TO_USER).strip())
                found = re.search(r"train_inner.*?({.*})", line)
                if found:
                    state = json.loads(found[1])
                    progress.set(float(state["num_updates"]), note=f"loss {state['loss']}")
                    figures = {name: float(state[name]) for name in _FIGURES if name in state}
                    board.log({"step": int(state["num_updates"]), **figures})
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise UserError(f"{log}: fairseq failed ({last[:200]}); see this file")


def _candidates(checkpoints: Path, average: int) -> dict[str, dict[str, Any]]:
    """Return the checkpoints in order of their updates, and the average of the last checkpoints."""
    # Omit optimiser states, times and paths, so that repeated trainings give identical files.
    paths = {int(path.stem.rpartition("_")[2]): path for path in checkpoints.glob("update_*.pt")}
    states: dict[str, dict[str, Any]] = {}
    for updates, path in sorted(paths.items()):
        state = fairseq.read_state(path)
        settings = argparse.Namespace(**vars(state["cfg"]["model"]))
        settings.data, settings.save_dir = "", "checkpoints"
        history = {"num_updates": updates, "lr_scheduler_state": {}}  # required by fairseq
        states[f"update {updates}"] = kept = {
            "args": settings,
            "model": {key: of.float() for key, of in state["model"].items()},  # float16 on a GPU
            "optimizer_history": [history],
            "extra_state": {},
        }
    last = [state["model"] for state in list(states.values())[-average:]]
    if len(last) > 1:
        states[f"average of the last {len(last)}"] = {**kept, "model": fairseq.mean_weights(last)}
    return states


def _assemble(folder: Path, data: Path, state: dict[str, Any]) -> None:
    import torch

    folder.mkdir(exist_ok=True)
    for path in (data / fairseq.SENTENCEPIECE, *data.glob("dict.*.txt")):
        shutil.copyfile(path, folder / path.name)
    torch.save(state, folder / fairseq.CHECKPOINT)


def _bleu(folder: Path, held_out: HeldOut, part: slice, options: NmtOptions, threads: int) -> float:
    """Measure a model's BLEU with sacrebleu. Rejected sentences have empty translations."""
    import sacrebleu

    from paraloom.models.nmt.translate import Translator

    translator = Translator(folder, options.replace(device="cpu"), threads=threads)
    rows, _ = translator.translate(held_out.sources[part])
    translations = [text or "" for text in rows["translation"].to_pylist()]
    return float(sacrebleu.corpus_bleu(translations, [held_out.references[part]]).score)
