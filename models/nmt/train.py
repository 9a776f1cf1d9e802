"""Train a translation model with fairseq; the result is a model folder."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from models.errors import UserError
from models.files import atomic_folder, digest
from models.nmt import fairseq_run
from models.nmt.engine import cores
from models.nmt.model_folder import CHECKPOINT, SENTENCEPIECE
from models.nmt.options import NmtOptions, NmtTrainingOptions
from models.nmt.training_data import (
    HeldOut,
    hold_out,
    train_subwords,
    write_dictionary,
    write_pieces,
    write_text,
)
from models.progress import meter

REPORT = "training.json"
_AVERAGED = 3  # checkpoints


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
    """Train a transformer on pairs and put a model folder at `folder`.

    Half of the held-out pairs choose among the checkpoints and their average, by BLEU of greedy
    translations; the other half gives the BLEU that is reported, with the default beam.

    A training that was killed starts anew on the data it had prepared, beside `folder` in a
    hidden one. The same arguments, seed and number of threads give the same weights on a CPU.

    Args:
        pairs: Parquet files with the columns `id`, `source` and `reference`.
        folder: what is there is replaced once the new model is whole.
        options: size of the model and length of the training.
        seed: of the initial weights, the dropout and the order of batches.
        source_language: name of the source side in the folder's files.
        target_language: name of the target side in the folder's files.
        threads: CPU cores to use, all by default.

    Returns:
        What `training.json` in the folder holds: BLEU, the checkpoints tried, counts, options.

    Raises:
        UserError: the pairs cannot be read or are too few; fairseq failed (its log is named).
    """
    options = options or NmtTrainingOptions()
    folder = Path(folder)
    threads = threads or cores()
    languages = (source_language, target_language)
    meaning = [[digest(path) for path in pairs], asdict(options), seed, languages, _versions()]
    key = hashlib.sha256(json.dumps(meaning).encode()).hexdigest()[:12]
    work = folder.parent / f".{folder.name}.training-{key}"
    for other in folder.parent.glob(f".{folder.name}.training-*"):
        if other != work:
            shutil.rmtree(other)

    data = work / "data"
    if not data.is_dir():
        with atomic_folder(data) as new:
            _prepare(pairs, new, options, languages, threads)
    counts = json.loads((data / "counts.json").read_text())
    _run_fairseq(work, options, languages, seed, threads)
    held_out = HeldOut(**json.loads((data / "held_out.json").read_text()))
    half = len(held_out.sources) // 2

    candidates = _candidates(work / "checkpoints")
    tried = {}
    for name, state in candidates.items():
        _assemble(work / "candidate", data, languages, state)
        tried[name] = _bleu(work / "candidate", held_out, slice(half), 1, threads)
    chosen = max(reversed(tried), key=lambda name: tried[name])  # of equals the later
    report: dict[str, Any] = {
        "bleu": 0.0,
        "chosen": chosen,
        "bleu_of_candidates": tried,
        "pairs": {**counts, "choice": half, "bleu": len(held_out.sources) - half},
        "options": asdict(options),
        "seed": seed,
        "versions": _versions(),
    }
    _assemble(work / "candidate", data, languages, candidates[chosen])
    report["bleu"] = _bleu(work / "candidate", held_out, slice(half, None), None, threads)
    with atomic_folder(folder) as new:
        _assemble(new, data, languages, candidates[chosen])
        (new / REPORT).write_text(json.dumps(report, indent=1) + "\n")
    shutil.rmtree(work)
    print(f"{folder}: BLEU {report['bleu']:.1f} on {report['pairs']['bleu']} held-out pairs")
    return report


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("fairseq-fixed", "torch", "sentencepiece")}


def _prepare(
    pairs: Sequence[Path],
    out: Path,
    options: NmtTrainingOptions,
    languages: tuple[str, str],
    threads: int,
) -> None:
    """Write held_out.json, the subword model, dictionaries and train.<language> in subwords."""
    held_out = hold_out(pairs, options.held_out)
    (out / "held_out.json").write_text(json.dumps(asdict(held_out)))
    texts = (out / "source.txt", out / "reference.txt")
    train = (out / f"train.{languages[0]}", out / f"train.{languages[1]}")
    write_text(pairs, held_out, *texts)
    train_subwords(texts, out, options, threads)
    count = write_pieces(out, *texts, train, options.batch_tokens)
    for text in texts:
        text.unlink()
    for language in languages:
        write_dictionary(out, out / f"dict.{language}.txt")
    counts = {"training": count, "held_out": len(held_out.sources)}
    (out / "counts.json").write_text(json.dumps(counts))


def _run_fairseq(
    work: Path, options: NmtTrainingOptions, languages: tuple[str, str], seed: int, threads: int
) -> None:
    """Binarise and train in another process."""
    data, binary, checkpoints = work / "data", work / "binary", work / "checkpoints"
    # From the start even where a killed training left checkpoints: gone on from one of them,
    # fairseq ended with other weights than it has uninterrupted.
    shutil.rmtree(checkpoints, ignore_errors=True)
    shutil.rmtree(binary, ignore_errors=True)
    source, target = languages
    dictionary = str(data / f"dict.{source}.txt")
    preprocess: dict[str, object] = {
        "source-lang": source,
        "target-lang": target,
        "trainpref": data / "train",
        "srcdict": dictionary,
        "joined-dictionary": None,
        "destdir": binary,
        "workers": 1,
    }
    train: dict[str, object] = {
        "source-lang": source,
        "target-lang": target,
        "arch": "transformer",
        "share-all-embeddings": None,
        "criterion": "label_smoothed_cross_entropy",
        "label-smoothing": options.label_smoothing,
        "dropout": options.dropout,
        "optimizer": "adam",
        "adam-betas": "(0.9, 0.98)",
        "lr": options.learning_rate,
        "lr-scheduler": "inverse_sqrt",
        "warmup-updates": options.warmup,
        "max-update": options.updates,
        "max-tokens": options.batch_tokens,
        "seed": seed,
        "num-workers": 0,
        "disable-validation": None,
        "save-dir": checkpoints,
        "save-interval-updates": -(-options.updates // options.checkpoints),
        "keep-interval-updates": 1,
        "no-epoch-checkpoints": None,
        "save-interval": 1_000_000,  # epochs
        "log-format": "json",
        "log-interval": 10,
    }
    for side in ("encoder", "decoder"):
        train |= {
            f"{side}-layers": options.layers,
            f"{side}-embed-dim": options.dim,
            f"{side}-attention-heads": options.heads,
            f"{side}-ffn-embed-dim": options.ffn,
            f"{side}-normalize-before": None,
        }
    commands = [["preprocess", *_flags(preprocess)], ["train", str(binary), *_flags(train)]]
    (work / "commands.json").write_text(json.dumps(commands))
    _follow(work, threads, options.updates)


def _flags(options: dict[str, object]) -> list[str]:
    flags = []
    for key, value in options.items():
        flags += [f"--{key}"] if value is None else [f"--{key}", str(value)]
    return flags


def _follow(work: Path, threads: int, updates: int) -> None:
    """Run the commands, keep what they print in a log, show the updates."""
    log = work / "fairseq.log"
    command = [sys.executable, "-P", str(fairseq_run.__file__), str(work / "commands.json")]
    environment = {
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that wait in a loop starve the others on busy cores
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
    }
    with (
        log.open("a", encoding="utf-8") as stream,
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
                found = re.search(r"train_inner.*?({.*})", line)
                if found:
                    state = json.loads(found[1])
                    progress.set(float(state["num_updates"]), note=f"loss {state['loss']}")
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise UserError(f"{log}: fairseq failed ({last[:200]}); the whole story is in this file")


def _updates(checkpoint: Path) -> int:
    return int(checkpoint.stem.rpartition("_")[2])


def _candidates(checkpoints: Path) -> dict[str, dict[str, Any]]:
    """The checkpoints by number of updates, and the average of the last of them.

    Only what decoding needs is kept: no optimizer, no times, no path of this machine, so that the
    same training gives the same file.
    """
    import torch

    from models.nmt.checkpoint import read_state

    states = {}
    for path in sorted(checkpoints.glob("update_*.pt"), key=_updates):
        state = read_state(path)
        settings = argparse.Namespace(**vars(state["cfg"]["model"]))
        settings.data, settings.save_dir = "", "checkpoints"
        history = {"num_updates": _updates(path), "lr_scheduler_state": {}}  # fairseq wants them
        states[f"update {_updates(path)}"] = {
            "args": settings,
            "model": state["model"],
            "optimizer_history": [history],
            "extra_state": {},
        }
    last = [state["model"] for state in list(states.values())[-_AVERAGED:]]
    if len(last) > 1:
        mean = {
            key: torch.stack([weights[key].float() for weights in last]).mean(0) for key in last[0]
        }
        states[f"average of the last {len(last)}"] = {**state, "model": mean}
    return states


def _assemble(folder: Path, data: Path, languages: tuple[str, str], state: dict[str, Any]) -> None:
    import torch

    folder.mkdir(exist_ok=True)
    for name in (SENTENCEPIECE, *(f"dict.{language}.txt" for language in languages)):
        shutil.copyfile(data / name, folder / name)
    torch.save(state, folder / CHECKPOINT)


def _bleu(folder: Path, held_out: HeldOut, part: slice, beam: int | None, threads: int) -> float:
    """BLEU (sacrebleu) of a model's translations; a rejected sentence counts as an empty one."""
    import sacrebleu

    from models.nmt.translate import Translator

    options = NmtOptions(device="cpu") if beam is None else NmtOptions(device="cpu", beam=beam)
    rows, _ = Translator(folder, options, threads=threads).translate(held_out.sources[part])
    translations = [text or "" for text in rows["translation"].to_pylist()]
    return float(sacrebleu.corpus_bleu(translations, [held_out.references[part]]).score)
