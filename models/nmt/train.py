"""Training of a translation model with fairseq."""

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

import yaml

from paraloom.models.cpu import cores
from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder, digest
from paraloom.models.nmt import fairseq_run
from paraloom.models.nmt.convert import forget
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.model_folder import CHECKPOINT, SENTENCEPIECE
from paraloom.models.nmt.options import NmtOptions, NmtTrainingOptions
from paraloom.models.nmt.training_data import (
    HeldOut,
    hold_out,
    train_subwords,
    write_dictionary,
    write_pieces,
    write_text,
)
from paraloom.models.printing import show
from paraloom.models.progress import meter

REPORT = "training.json"
_AVERAGED = 3  # checkpoints
_SETTINGS = Path(__file__).with_name("fairseq.yaml")  # those that no option changes


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
    """Train a transformer on pairs and write a model folder.

    The checkpoints and their average are compared by the BLEU of greedy translations on half of the
    held-out pairs. The BLEU of the best one, with the default beam, is reported on the other half.

    Prepared data are kept in a hidden folder beside `folder` until the training is finished; an
    interrupted training uses them and starts again. On a CPU the same arguments, seed and number of
    threads give the same weights.

    Args:
        pairs: Parquet files with the columns `id`, `source` and `reference`.
        folder: replaced as a whole when the new model is finished.
        source_language: code in the names of the folder's files, as `target_language`.
        threads: CPU cores to use, all by default.

    Returns:
        The content of `training.json` in the folder: BLEU, all candidates, counts, options.
    """
    options = options or NmtTrainingOptions()
    folder = Path(folder)
    threads = threads or cores()
    languages = (source_language, target_language)
    given = options.model_dump(exclude_none=True)
    inputs = [[digest(path) for path in pairs], given, seed, languages, _versions()]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:12]
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
    bleu = {}
    for name, state in candidates.items():
        _assemble(work / "candidate", data, languages, state)
        bleu[name] = _bleu(work / "candidate", held_out, slice(half), 1, threads)
        forget(FairseqModel(work / "candidate"))
    chosen = max(reversed(bleu), key=lambda name: bleu[name])  # the later one of equals
    report: dict[str, Any] = {
        "bleu": 0.0,
        "chosen": chosen,
        "bleu_of_candidates": bleu,
        "pairs": {**counts, "choice": half, "bleu": len(held_out.sources) - half},
        "options": options.model_dump(),
        "seed": seed,
        "versions": _versions(),
    }
    _assemble(work / "candidate", data, languages, candidates[chosen])
    report["bleu"] = _bleu(work / "candidate", held_out, slice(half, None), None, threads)
    with atomic_folder(folder) as new:
        _assemble(new, data, languages, candidates[chosen])
        (new / REPORT).write_text(json.dumps(report, indent=1) + "\n")
    shutil.rmtree(work)
    show(f"{folder}: BLEU {report['bleu']:.1f} on {report['pairs']['bleu']} held-out pairs")
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
    """Write held_out.json, counts.json, the subword model, dictionaries and train.<language>."""
    held_out = hold_out(pairs, options.held_out)
    (out / "held_out.json").write_text(json.dumps(asdict(held_out)))
    texts = (out / "source.txt", out / "reference.txt")
    train = (out / f"train.{languages[0]}", out / f"train.{languages[1]}")
    write_text(pairs, held_out, *texts)
    subwords = train_subwords(texts, out, options, threads)
    count = write_pieces(subwords, *texts, train, options.batch_tokens)
    for text in texts:
        text.unlink()
    for language in languages:
        write_dictionary(subwords, out / f"dict.{language}.txt")
    counts = {"training": count, "held_out": len(held_out.sources)}
    (out / "counts.json").write_text(json.dumps(counts))


def _run_fairseq(
    work: Path, options: NmtTrainingOptions, languages: tuple[str, str], seed: int, threads: int
) -> None:
    """Preprocess and train in another process."""
    data, binary, checkpoints = work / "data", work / "binary", work / "checkpoints"
    # Do not resume from checkpoints of a killed training: fairseq would end with other weights than
    # without the interruption.
    shutil.rmtree(checkpoints, ignore_errors=True)
    shutil.rmtree(binary, ignore_errors=True)
    pair = {"source-lang": languages[0], "target-lang": languages[1]}
    settings = yaml.safe_load(_SETTINGS.read_text())
    preprocess: dict[str, object] = {
        **pair,
        **settings["preprocess"],
        "trainpref": data / "train",
        "srcdict": data / f"dict.{languages[0]}.txt",
        "destdir": binary,
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
    _run_commands(work, threads, options.updates)


def _flags(options: dict[str, object]) -> list[str]:
    return [f"--{key}" if value is None else f"--{key}={value}" for key, value in options.items()]


def _run_commands(work: Path, threads: int, updates: int) -> None:
    """Run commands.json, write the output to a log, show the progress."""
    log = work / "fairseq.log"
    command = [sys.executable, "-P", str(fairseq_run.__file__), str(work / "commands.json")]
    environment = {
        "OMP_WAIT_POLICY": "PASSIVE",  # busy waiting would take the cores from other processes
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
        raise UserError(f"{log}: fairseq failed ({last[:200]}); see this file")


def _updates(checkpoint: Path) -> int:
    return int(checkpoint.stem.rpartition("_")[2])


def _candidates(checkpoints: Path) -> dict[str, dict[str, Any]]:
    """The checkpoints by number of updates, and the average of the last ones.

    They contain only what decoding needs: without optimiser state, times and paths of this machine,
    the same training gives the same file.
    """
    import torch

    from paraloom.models.nmt.checkpoint import read_state

    states = {}
    for path in sorted(checkpoints.glob("update_*.pt"), key=_updates):
        state = read_state(path)
        settings = argparse.Namespace(**vars(state["cfg"]["model"]))
        settings.data, settings.save_dir = "", "checkpoints"
        history = {"num_updates": _updates(path), "lr_scheduler_state": {}}  # required by fairseq
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
    """BLEU (sacrebleu) of a model's translations; rejected sentences count as empty."""
    import sacrebleu

    from paraloom.models.nmt.translate import Translator

    options = NmtOptions(device="cpu") if beam is None else NmtOptions(device="cpu", beam=beam)
    rows, _ = Translator(folder, options, threads=threads).translate(held_out.sources[part])
    translations = [text or "" for text in rows["translation"].to_pylist()]
    return float(sacrebleu.corpus_bleu(translations, [held_out.references[part]]).score)
