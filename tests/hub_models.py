"""Trains a small translation model of each family in seconds, in Hugging Face's format.

The files are like the Hub's files, and are written without the tested code.
"""

import json
import random
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import sentencepiece
import torch
from transformers import (
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as M2M100_CODES
from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as MBART25_CODES
from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as MBART50_CODES
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES as NLLB_CODES

from tests.hub_folders import LONGEST, NAMES, Expected, write_json
from tests.small_model import SEED, TEXTS, new_pairs, short_pairs

PIECES = 300
PAIRS = 1000
STEPS = {"marian": 150, "marian2": 150, "madlad": 100, "t5": 100, "mt5": 100}
"""Training steps. With fewer steps, these models translate all sources alike."""
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
MARIAN_README = "---\nlicense: cc-by-4.0\nlanguage: [cs, en]\n---\n# A small model\n"


class Example(NamedTuple):
    """A pair as ids in the format of a model family, computed without the tested code."""

    source: list[int]
    start: list[int]
    """The first input of the decoder, and the tokens that are forced after this input."""
    target: list[int]


class Made(NamedTuple):
    """A network, its vocabulary by id, and the function that makes an `Example` of a pair."""

    network: Any
    tokens: list[str]
    example: Callable[[str, str], Example]


def pairs() -> list[tuple[str, str]]:
    """Return the pairs on which models are trained."""
    return list(islice(short_pairs(), TEXTS, TEXTS + PAIRS))


def train_sentencepiece(folder: Path, name: str, texts: Sequence[str], **options: Any) -> Path:
    """Write a SentencePiece model of `PIECES` pieces."""
    path = folder / name
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_prefix=str(path),
        **{"vocab_size": PIECES, "minloglevel": 2, "hard_vocab_limit": False, **options},
    )
    path.with_name(f"{name}.model").rename(path)
    path.with_name(f"{name}.vocab").unlink()
    return path


def load(path: Path) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def all_pieces(path: Path) -> list[str]:
    model = load(path)
    return [model.id_to_piece(number) for number in range(model.get_piece_size())]


def joint(folder: Path, name: str = "sentencepiece.bpe.model", **options: Any) -> Path:
    return train_sentencepiece(folder, name, [text for pair in pairs() for text in pair], **options)


SMALL: dict[str, Any] = {"d_model": 32, "dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.1}
LAYERS: dict[str, Any] = {
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 128,
}


def marian(folder: Path, *, separate: bool = False) -> Made:
    """Two SentencePiece models, and one vocabulary or two (`separate`), with `<pad>` at the end."""
    names = ("source.spm", "target.spm")
    spms = []
    for side, name in enumerate(names):
        texts = [pair[side] for pair in pairs()]
        spms.append(load(train_sentencepiece(folder, name, texts)))
    sides = [all_pieces(folder / name)[3:] for name in names]
    if not separate:
        sides = [list(dict.fromkeys([*sides[0], *sides[1]]))] * 2
    source, target = ([*SPECIALS[2:], *pieces, SPECIALS[1]] for pieces in sides)
    ids = [{token: number for number, token in enumerate(tokens)} for tokens in (source, target)]
    write_json(folder / "vocab.json", ids[0])
    tokenizer = {"source_lang": "cs", "target_lang": "en", "tokenizer_class": "MarianTokenizer"}
    if separate:
        write_json(folder / "target_vocab.json", ids[1])
    write_json(folder / "tokenizer_config.json", {**tokenizer, "separate_vocabs": separate})
    (folder / "README.md").write_text(MARIAN_README)
    pad = len(source) - 1
    config = MarianConfig(
        **SMALL, **LAYERS, vocab_size=len(source), pad_token_id=pad, eos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0, scale_embedding=True,
        activation_function="swish", tie_word_embeddings=not separate,
        share_encoder_decoder_embeddings=not separate, decoder_vocab_size=len(target),
    )  # fmt: skip

    def example(*texts: str) -> Example:
        given, wanted = (
            [by_token.get(p, 1) for p in spm.encode(text, out_type=str)]
            for spm, by_token, text in zip(spms, ids, texts, strict=True)
        )
        return Example([*given, 0], [pad], [*wanted, 0])

    return Made(MarianMTModel(config), target, example)


def marian2(folder: Path) -> Made:
    """Marian with two vocabularies."""
    return marian(folder, separate=True)


def m2m100(folder: Path) -> Made:
    """vocab.json without languages, and unused tokens at the end."""
    spm = joint(folder)
    base = ["<s>", "<pad>", "</s>", "<unk>", *all_pieces(spm)[3:]]
    write_json(folder / "vocab.json", {token: number for number, token in enumerate(base)})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer"})
    tokens = [*base, *(f"__{code}__" for code in M2M100_CODES["m2m100"])]
    config = M2M100Config(**SMALL, **LAYERS, vocab_size=len(tokens) + 8, scale_embedding=True,
                          decoder_start_token_id=2, activation_function="relu")  # fmt: skip
    network = M2M100ForConditionalGeneration(config)
    return Made(network, tokens, tagged(spm, tokens, "__cs__", "__en__"))


def nllb(folder: Path) -> Made:
    """SentencePiece (BPE) and all 202 languages, without tokenizer.json."""
    spm = joint(folder, model_type="bpe")
    tokens = [*SPECIALS, *all_pieces(spm)[3:], *NLLB_CODES, "<mask>"]
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer"})
    config = M2M100Config(**SMALL, **LAYERS, vocab_size=len(tokens) + 2, scale_embedding=True,
                          decoder_start_token_id=2, activation_function="relu")  # fmt: skip
    network = M2M100ForConditionalGeneration(config)
    return Made(network, tokens, tagged(spm, tokens, "ces_Latn", "eng_Latn"))


def tagged(spm: Path, tokens: list[str], source: str, target: str) -> Callable[..., Example]:
    """Return a function for examples with `tag X </s>` as source and a tag before the target."""
    model, ids = load(spm), {token: number for number, token in enumerate(tokens)}

    def numbers(text: str) -> list[int]:
        return [ids.get(piece, 3) for piece in model.encode(text, out_type=str)]

    def example(given: str, wanted: str) -> Example:
        return Example([ids[source], *numbers(given), 2], [2, ids[target]], [*numbers(wanted), 2])

    return example


def mbart50(folder: Path) -> Made:
    """tokenizer.json, without a SentencePiece model."""
    from transformers import MBart50Tokenizer

    spm = joint(folder)
    model = load(spm)
    scores = [(model.id_to_piece(n), model.get_score(n)) for n in range(model.get_piece_size())]
    tokenizer = MBart50Tokenizer(vocab=scores, _spm_precompiled_charsmap=None)
    tokenizer.save_pretrained(folder)
    tokens = [*SPECIALS, *all_pieces(spm)[3:], *MBART50_CODES, "<mask>"]
    config = MBartConfig(**SMALL, **LAYERS, vocab_size=len(tokens) + 1, scale_embedding=True,
                         decoder_start_token_id=2, forced_eos_token_id=2)  # fmt: skip
    spm.rename(folder.parent / f"{folder.name}.spm")  # out of the model's folder
    network = MBartForConditionalGeneration(config)
    example = tagged(folder.parent / f"{folder.name}.spm", tokens, "cs_CZ", "en_XX")
    return Made(network, tokens, example)


def mbart25(folder: Path) -> Made:
    """The source is `X </s> tag`, and the decoder starts with the target's tag."""
    spm = joint(folder)
    tokens = [*SPECIALS, *all_pieces(spm)[3:], *MBART25_CODES, "<mask>"]
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MBartTokenizer"})
    config = MBartConfig(**SMALL, **LAYERS, vocab_size=len(tokens), scale_embedding=True,
                         decoder_start_token_id=tokens.index("en_XX"))  # fmt: skip
    plain = tagged(spm, tokens, "cs_CZ", "en_XX")

    def example(given: str, wanted: str) -> Example:
        (tag, *source), (_, start), target = plain(given, wanted)
        return Example([*source, tag], [start], target)

    return Made(MBartForConditionalGeneration(config), tokens, example)


T5_SIZE: dict[str, Any] = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2,
           "dropout_rate": 0.0, "initializer_factor": 1.0, "decoder_start_token_id": 0}  # fmt: skip


def madlad(folder: Path) -> Made:
    """T5 1.1 (gated layers, unscaled logits) with a tag, padding `<s>` and start token `<unk>`."""
    symbols = "<2en>,<2cs>,<2zh_Hant>"
    path = joint(folder, "spiece.model", user_defined_symbols=symbols)
    spm = load(path)
    changes = {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu",
               "pad_token_id": 1, "eos_token_id": 2}  # fmt: skip
    config = T5Config(**{**T5_SIZE, **changes, "vocab_size": spm.get_piece_size()})
    tag = spm.piece_to_id("<2en>")

    def example(given: str, wanted: str) -> Example:
        return Example([tag, *spm.encode(given), 2], [0], [*spm.encode(wanted), 2])

    return Made(T5ForConditionalGeneration(config), all_pieces(path), example)


PROMPT = "translate Czech to English: "


def prompted(folder: Path, config: Any, network: Any) -> Made:
    """Instead of a tag, the source has a prompt, which is in the config for two languages."""
    path = joint(folder, "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    spm = load(path)
    config.vocab_size = spm.get_piece_size() + 100  # with the sentinels `<extra_id_…>`
    config.task_specific_params = {
        "summarization": {"prefix": "summarize: "},
        "translation_cs_to_en": {"prefix": PROMPT},
    }

    def example(given: str, wanted: str) -> Example:
        return Example([*spm.encode(PROMPT + given), 1], [0], [*spm.encode(wanted), 1])

    sentinels = [f"<extra_id_{number}>" for number in reversed(range(100))]
    return Made(network(config), [*all_pieces(path), *sentinels], example)


def t5(folder: Path) -> Made:
    """T5 1.0: scaled logits, and one matrix for input and output."""
    return prompted(folder, T5Config(**T5_SIZE), T5ForConditionalGeneration)


def mt5(folder: Path) -> Made:
    """Gated layers and unscaled logits."""
    return prompted(folder, MT5Config(**T5_SIZE), MT5ForConditionalGeneration)


MAKERS = (marian, marian2, m2m100, nllb, mbart25, mbart50, madlad, t5, mt5)
FAMILIES = dict(zip(NAMES, MAKERS, strict=True))


def make(family: str, folder: Path, sentences: int = 40) -> None:
    """Train a small model of a family, and write its folder and the expected results."""
    torch.manual_seed(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the network is too small for more
    made = FAMILIES[family](folder)
    train(made, STEPS.get(family, 60))
    made.network.eval()
    save(made.network, folder)
    expected = expect(made, new_pairs(sentences))
    write_json(folder.parent / f"{folder.name}.json", expected)
    torch.set_num_threads(threads)


@torch.inference_mode()
def expect(made: Made, of: Sequence[tuple[str, str]]) -> list[Expected]:
    """Return expected results: translations of `generate`, and scores of the network."""
    examples = [made.example(*pair) for pair in of]
    start = examples[0].start
    config = made.network.config
    is_marian = isinstance(config, MarianConfig)
    generation: Any = GenerationConfig  # without type annotations
    settings = generation(
        num_beams=12, num_return_sequences=12, early_stopping=True, length_penalty=1.0,
        max_new_tokens=LONGEST + len(start) - 1, decoder_start_token_id=start[0],
        forced_bos_token_id=start[1] if len(start) > 1 else None,
        eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id,
        bad_words_ids=[[config.pad_token_id]] if is_marian else None,
        renormalize_logits=is_marian,
    )  # fmt: skip
    made.network.generation_config = settings
    ids, mask = padded([example.source for example in examples], config.pad_token_id)
    rows = made.network.generate(ids, attention_mask=mask, generation_config=settings).tolist()
    lists = [[_cut(row[len(start) :], config.eos_token_id) for row in rows[at : at + 12]]
             for at in range(0, len(rows), 12)]  # fmt: skip
    best = [
        example._replace(target=[*ranked[0][0], config.eos_token_id])
        for example, ranked in zip(examples, lists, strict=True)
    ]
    scores, references = mean_log_probs(made, best), mean_log_probs(made, examples)
    expected = []
    for pair, ranked, score, reference in zip(of, lists, scores, references, strict=True):
        pieces = [[made.tokens[number] for number in made_ids] for made_ids, _ in ranked]
        expected.append(Expected(*pair, pieces, score, ranked[0][1], reference))
    return expected


def _cut(row: list[int], eos: int) -> tuple[list[int], bool]:
    """Return the ids before the end of sentence, and whether the row has this end."""
    return (row[: row.index(eos)], True) if eos in row else (row, False)


def mean_log_probs(made: Made, examples: Sequence[Example]) -> list[float]:
    """Return each target's mean log p of its subwords, including the end of sentence."""
    config = made.network.config
    ids, mask = padded([example.source for example in examples], config.pad_token_id)
    rows = [[*example.start, *example.target[:-1]] for example in examples]
    given, _ = padded(rows, config.pad_token_id)
    logits = made.network(input_ids=ids, attention_mask=mask, decoder_input_ids=given).logits
    if isinstance(config, MarianConfig):
        logits[..., config.pad_token_id] = -torch.inf
    found = []
    for example, of_row in zip(examples, logits.log_softmax(-1), strict=True):
        first, length = len(example.start) - 1, len(example.target)
        steps = of_row[first : first + length]
        found.append(float(steps.gather(1, torch.tensor(example.target)[:, None]).mean()))
    return found


def save(network: Any, folder: Path, **options: Any) -> None:
    """Write weights and config.json."""
    network.save_pretrained(folder, **options)
    config = json.loads((folder / "config.json").read_text())
    if not getattr(network.config, "scale_decoder_outputs", True):
        config["tie_word_embeddings"] = False  # transformers 5 writes true for every T5
        write_json(folder / "config.json", config)


def train(made: Made, steps: int, size: int = 48) -> None:
    """Train with Adam on batches of pairs of similar length."""
    examples = sorted((made.example(*pair) for pair in pairs()), key=lambda e: len(e.source))
    batches = [examples[at : at + size] for at in range(0, len(examples), size)]
    rng = random.Random(SEED)
    optimizer = torch.optim.Adam(made.network.parameters(), lr=0.005)
    made.network.train()
    pad = made.network.config.pad_token_id
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 0.005 * min(1, (step + 1) / 20)
        batch = rng.choice(batches)
        source, mask = padded([example.source for example in batch], pad)
        rows = [[*example.start, *example.target[:-1]] for example in batch]
        given, _ = padded(rows, pad)
        labels, _ = padded([[*example.start[1:], *example.target] for example in batch], -100)
        logits = made.network(input_ids=source, attention_mask=mask, decoder_input_ids=given).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(made.network.parameters(), 1.0)
        optimizer.step()


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the padded rows as a tensor, and the mask of the tensor."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    return ids, mask
