"""A small fairseq model with the files of published models: BPE codes, dictionaries, `model.pt`."""

import argparse
import itertools
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from paraloom.models.nmt.families.fairseq import import_fairseq
from paraloom.models.nmt.families.subwords import MosesBpe
from tests.hub_models import Example, Made, pairs, train

MERGES = 300
_SIZES = {"embed_dim": 64, "ffn_embed_dim": 128, "layers": 2, "attention_heads": 2}


def learn_codes(words: Counter[str], fast: bool = False) -> str:
    """Learn BPE codes, and return them in subword-nmt's format or, with `fast`, fastBPE's."""
    parts = {word: [*word[:-1], f"{word[-1]}</w>"] for word in words}
    lines = [] if fast else ["#version: 0.2"]
    for _ in range(MERGES):
        counts = Counter[tuple[str, str]]()
        for word, of in parts.items():
            for pair in itertools.pairwise(of):
                counts[pair] += words[word]
        if not counts:
            break
        (first, second), count = max(counts.items(), key=lambda item: (item[1], item[0]))
        lines.append(f"{first} {second} {count}" if fast else f"{first} {second}")
        for of in parts.values():
            at = 0
            while at < len(of) - 1:
                if of[at : at + 2] == [first, second]:
                    of[at : at + 2] = [first + second]
                at += 1
    return "\n".join(lines) + "\n"


def make(folder: Path, *, fast: bool = False, joined: bool = False, steps: int = 0) -> Path:
    """Write a model folder, whose `model.pt` is trained for `steps`."""
    import sacremoses

    torch.manual_seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    split = [sacremoses.MosesTokenizer(language).tokenize for language in ("cs", "en")]
    words = Counter(
        word for pair in pairs() for tokenize, text in zip(split, pair, strict=True)
        for word in tokenize(text, aggressive_dash_splits=True)
    )  # fmt: skip
    (folder / "bpecodes").write_text(learn_codes(words, fast), encoding="utf-8")
    subwords = MosesBpe(folder / "bpecodes", "cs", "en")
    sides = [subwords.encode([source for source, _ in pairs()]),
             subwords.encode([target for _, target in pairs()], target=True)]  # fmt: skip
    both = Counter(piece for side in sides for row in side for piece in row)
    for language, side in zip(("cs", "en"), sides, strict=True):
        counts = both if joined else Counter(piece for row in side for piece in row)
        lines = [f"{piece} {count}\n" for piece, count in counts.most_common() if count > 1]
        (folder / f"dict.{language}.txt").write_text("".join(lines), encoding="utf-8")
    return write_network(folder, subwords, joined, steps)


def write_network(folder: Path, subwords: MosesBpe, joined: bool, steps: int) -> Path:
    """Train a network for the folder's dictionaries, and write `model.pt`."""
    fairseq = import_fairseq()
    source, target = (
        fairseq.data.Dictionary.load(str(folder / f"dict.{language}.txt"))
        for language in ("cs", "en")
    )
    sizes = {f"{s}_{key}": value for s in ("encoder", "decoder") for key, value in _SIZES.items()}
    settings = argparse.Namespace(
        arch="transformer", source_lang="cs", target_lang="en", task="translation", dropout=0.0,
        share_all_embeddings=joined, share_decoder_input_output_embed=True, **sizes,
    )  # fmt: skip
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    network = fairseq.models.transformer.TransformerModel.build_model(settings, task)
    for parameter in network.parameters():  # so that untrained weights give different translations
        parameter.data *= 1.5

    class Network:
        """The network with the call signature of Transformers."""

        config = SimpleNamespace(pad_token_id=source.pad())
        parameters, train = network.parameters, network.train

        def __call__(self, input_ids: Any, attention_mask: Any, decoder_input_ids: Any) -> Any:
            logits, _ = network(input_ids, attention_mask.sum(1), decoder_input_ids)
            return SimpleNamespace(logits=logits)

    def example(given: str, wanted: str) -> Example:
        (pieces,), (translation,) = (
            subwords.encode([given]),
            subwords.encode([wanted], target=True),
        )
        ids = [[*map(d.index, of), 2] for d, of in ((source, pieces), (target, translation))]
        return Example(ids[0], [2], ids[1])

    if steps:
        train(Made(Network(), target.symbols, example), steps)
    written = {"args": settings, "model": network.state_dict(), "extra_state": {},
               "optimizer_history": [{"num_updates": steps, "lr_scheduler_state": {}}]}  # fmt: skip
    torch.save(written, folder / "model.pt")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    for name in ("fast", "joined"):
        parser.add_argument(f"--{name}", action="store_true")
    make(**vars(parser.parse_args()))
