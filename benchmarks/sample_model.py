"""Train the translation model of the sample (`make sample-model`) and put it into the package.

The model is trained as in a run of the sample with `nmt.model: null`. Weights are stored in half
precision. The model's card states its BLEU.
"""

import json
import shutil
from pathlib import Path

import torch

from paraloom.models.files import atomic_folder
from paraloom.models.nmt.families.fairseq import CHECKPOINT, SENTENCEPIECE, read_state
from paraloom.models.nmt.train import REPORT
from paraloom.pipeline.config.read import SAMPLE, read_config
from paraloom.pipeline.run.make import run_stages

RUN = "runs/sample-model"
MODEL = SAMPLE / "cs-en"
_CARD = """\
---
language: [cs, en]
license: apache-2.0
pipeline_tag: translation
---

# A Czech–English translation model for the sample

The model translates only sentences like the sentences of the sample, which are short and regular.
The configuration of the sample uses the model. For your own text, name another model in
`nmt.model`.

| | |
| --- | --- |
| network | transformer of fairseq, {encoder_layers} encoder layers and {decoder_layers} decoder \
layer, width {dim}, {heads} heads, feed-forward {ffn}, one vocabulary of {pieces:,} subwords |
| parameters | {parameters:,}, in half precision |
| trained on | {training:,} pairs of the sample's bitext, {updates:,} updates with about \
{batch_tokens:,} subwords each, on two CPU cores, seed {seed} |
| BLEU | {bleu:.1f} (sacrebleu, beam 12) on {held} pairs held out from training; as many other \
held-out pairs chose the checkpoint ({chosen}) |
| versions | {versions} |

`make sample-model` trains the model again, in some minutes. On another processor, rounding may lead
to another model. `training.json` contains all settings and the BLEU of each checkpoint.
"""


def halved(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights in half precision.

    Equal weights, such as shared embeddings, are stored once.
    """
    kept: dict[bytes, torch.Tensor] = {}
    halves = {name: of.half() for name, of in weights.items()}
    return {name: kept.setdefault(of.numpy().tobytes(), of) for name, of in halves.items()}


def ship(trained: Path, folder: Path) -> None:
    """Write the sample's model folder from the folder of a trained model."""
    report = json.loads((trained / REPORT).read_text())
    state = read_state(trained / CHECKPOINT)
    state["model"] = halved(state["model"])
    with atomic_folder(folder) as out:
        torch.save(state, out / CHECKPOINT)
        for path in (trained / SENTENCEPIECE, trained / REPORT, *trained.glob("dict.*.txt")):
            shutil.copyfile(path, out / path.name)
        values = {**report["options"], **report["pairs"], "held": report["pairs"]["bleu"]}
        values |= {name: report[name] for name in ("bleu", "chosen", "seed")}
        stored = {of.data_ptr(): of.numel() for of in state["model"].values()}
        values["parameters"] = sum(stored.values())
        values["versions"] = ", ".join(f"{name} {of}" for name, of in report["versions"].items())
        (out / "README.md").write_text(_CARD.format(**values), "utf-8")


def main() -> None:
    """Train the model and write its folder."""
    config = read_config("sample", [f"run={RUN}", "nmt.model=null"])
    ship(Path(run_stages(config, ["nmt"]).folder("nmt")), MODEL)
    print(f"{MODEL}: {sum(path.stat().st_size for path in MODEL.iterdir()):,} bytes")


if __name__ == "__main__":
    main()
