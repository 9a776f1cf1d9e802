"""Small models in Marian's own format, trained as in `tests.hub_models`."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from transformers import MarianConfig, MarianMTModel

from tests.hub_models import (
    LAYERS,
    SMALL,
    Example,
    Made,
    all_pieces,
    load,
    pairs,
    train,
    train_sentencepiece,
)

MARIANS: dict[str, Any] = {"bos_id": -1, "eos_id": 0, "unk_id": 1, "character_coverage": 1.0}
"""Marian's options for the training of SentencePiece."""
SETTINGS: dict[str, Any] = {
    "type": "transformer", "tied-embeddings": False, "tied-embeddings-src": False,
    "tied-embeddings-all": True, "dec-depth": 2, "enc-depth": 2, "dim-emb": 32,
    "transformer-decoder-autoreg": "self-attention", "transformer-dim-ffn": 64,
    "transformer-decoder-dim-ffn": 0, "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2, "transformer-guided-alignment-layer": "last",
    "transformer-heads": 2, "transformer-no-projection": False, "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d", "transformer-postprocess-top": "",
    "transformer-preprocess": "", "transformer-tied-layers": [], "version": "v1.12.42",
}  # fmt: skip


def make(folder: Path, form: str = "spm", steps: int = 0, **sizes: Any) -> Made:
    """Train and write a model, with `vocab.spm` (form "spm") or with OPUS-MT's files ("opus").

    In the form "opus", the source has the tag `>>eng<<`.
    """
    torch.manual_seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    texts = [[pair[side] for pair in pairs()] for side in (0, 1)]
    tag: list[str] = []
    if form == "spm":
        spms = [
            load(train_sentencepiece(folder, "vocab.spm", [*texts[0], *texts[1]], **MARIANS))
        ] * 2
        tokens = all_pieces(folder / "vocab.spm")
        names = ["vocab.spm"] * 2
    else:
        tag = [">>eng<<"]
        names = ["source.spm", "target.spm"]
        spms = [
            load(train_sentencepiece(folder, *of, character_coverage=1.0))
            for of in zip(names, texts, strict=True)
        ]
        pieces = [piece for name in names for piece in all_pieces(folder / name)[3:]]
        tokens = list(dict.fromkeys(["</s>", "<unk>", *pieces, *tag, ">>fra<<"]))
        names = ["opus.spm32k-spm32k.vocab.yml"] * 2
        lines = (yaml.safe_dump({token: n}, allow_unicode=True) for n, token in enumerate(tokens))
        (folder / names[0]).write_text("".join(lines), encoding="utf-8")
    ids = {token: number for number, token in enumerate(tokens)}
    pad = len(tokens)
    config = MarianConfig(
        **{**SMALL, **LAYERS, **sizes}, vocab_size=pad + 1, pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0, scale_embedding=True,
        activation_function="swish", tie_word_embeddings=True,
    )  # fmt: skip
    network: Any = MarianMTModel(config)

    def example(*given: str) -> Example:
        source, target = (
            [ids.get(piece, 1) for piece in spm.encode(text, out_type=str)]
            for spm, text in zip(spms, given, strict=True)
        )
        return Example([*map(ids.__getitem__, tag), *source, 0], [pad], [*target, 0])

    _like_marian(network, pad)
    made = Made(network, tokens, example)
    if steps:
        train(made, steps)
    network.eval()
    settings = SETTINGS | {
        "dim-emb": config.d_model, "enc-depth": config.encoder_layers,
        "dec-depth": config.decoder_layers, "transformer-heads": config.encoder_attention_heads,
        "transformer-dim-ffn": config.encoder_ffn_dim, "dim-vocabs": [pad, pad],
    }  # fmt: skip
    save(folder / ("model.npz" if form == "spm" else "opus.npz.best-perplexity.npz"),
         weights_of(network, pad), settings)  # fmt: skip
    if form != "spm":
        model = "opus.npz.best-perplexity.npz"
        decoder = {"relative-paths": True, "models": [model], "vocabs": names, "normalize": 1}
        (folder / "decoder.yml").write_text(yaml.safe_dump(decoder))
    return made


def as_opus(folder: Path, out: Path) -> Path:
    """Copy a model with `vocab.spm` to a folder with OPUS-MT's files, without a tag."""
    out.mkdir()
    for name in ("source.spm", "target.spm"):
        (out / name).write_bytes((folder / "vocab.spm").read_bytes())
    (out / "opus.npz").write_bytes((folder / "model.npz").read_bytes())
    tokens = enumerate(all_pieces(folder / "vocab.spm"))
    lines = [f"{json.dumps(token, ensure_ascii=False)}: {number}\n" for number, token in tokens]
    (out / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    settings = {"models": ["opus.npz"], "vocabs": ["opus.vocab.yml"] * 2, "normalize": 1}
    (out / "decoder.yml").write_text(yaml.safe_dump(settings))
    return out


def _like_marian(network: Any, pad: int) -> None:
    """Set Marian's positions, and its first decoder input: zeros, which are not trained."""
    half = network.config.d_model // 2
    rates = np.exp(np.arange(half) * -np.log(10000) / (half - 1))
    angles = torch.tensor(np.arange(128)[:, None] * rates)
    positions = torch.cat([angles.sin(), angles.cos()], 1).float()
    for side in (network.model.encoder, network.model.decoder):
        side.embed_positions.weight.data[:] = positions
    shared = network.model.shared.weight
    keep = torch.ones(len(shared), 1)
    keep[pad] = 0
    shared.data.mul_(keep)
    shared.register_hook(lambda gradient: gradient * keep)
    network.final_logits_bias[0, pad] = -1e4  # Marian has no padding subword


def weights_of(network: Any, pad: int) -> dict[str, Any]:
    """Return a network's weights under Marian's names."""
    weights = {name: weight.detach().numpy() for name, weight in network.state_dict().items()}
    found = {"Wemb": weights["model.shared.weight"][:pad],
             "decoder_ff_logit_out_b": weights["final_logits_bias"][:, :pad]}  # fmt: skip
    for side in ("encoder", "decoder"):
        for layer in range(network.config.decoder_layers):
            own, here = f"model.{side}.layers.{layer}", f"{side}_l{layer + 1}"
            parts = {"self": ("self_attn", "self_attn_layer_norm")}
            if side == "decoder":
                parts["context"] = ("encoder_attn", "encoder_attn_layer_norm")
            for part, (attention, norm) in parts.items():
                for name in "qkvo":
                    theirs = f"{own}.{attention}.{'out' if name == 'o' else name}_proj"
                    found[f"{here}_{part}_W{name}"] = weights[f"{theirs}.weight"].T
                    found[f"{here}_{part}_b{name}"] = weights[f"{theirs}.bias"][None]
                found[f"{here}_{part}_Wo_ln_scale"] = weights[f"{own}.{norm}.weight"][None]
                found[f"{here}_{part}_Wo_ln_bias"] = weights[f"{own}.{norm}.bias"][None]
            for number in (1, 2):
                found[f"{here}_ffn_W{number}"] = weights[f"{own}.fc{number}.weight"].T
                found[f"{here}_ffn_b{number}"] = weights[f"{own}.fc{number}.bias"][None]
            found[f"{here}_ffn_ffn_ln_scale"] = weights[f"{own}.final_layer_norm.weight"][None]
            found[f"{here}_ffn_ffn_ln_bias"] = weights[f"{own}.final_layer_norm.bias"][None]
    return {name: np.ascontiguousarray(weight) for name, weight in found.items()}


def save(path: Path, weights: dict[str, Any], settings: dict[str, Any]) -> None:
    """Write weights and settings. As in Marian, zeros fill up the settings."""
    text = yaml.safe_dump(settings).encode()
    text += b"\0" * (256 - len(text) % 256)
    np.savez(path, **{**weights, "special:model.yml": np.frombuffer(text, np.int8)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--form", default="spm")
    parser.add_argument("--steps", type=int, default=150)
    options = parser.parse_args()
    make(options.folder, options.form, options.steps)
