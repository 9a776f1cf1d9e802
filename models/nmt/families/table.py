"""Model families in Hugging Face's format, and their differences."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError
from paraloom.models.languages import short_code
from paraloom.models.nmt.families.base import Languages, TokenLayout
from paraloom.models.nmt.families.languages import find_tag, tags_by_language
from paraloom.models.nmt.families.subwords import TokenizerJson, open_subwords
from paraloom.models.structured import read_json

SOURCE, TARGET = "source", "target"  # placeholders for language tags in tokens of a `Family`


@dataclass(frozen=True, kw_only=True)
class Family:
    """Properties of a model family. If `forced` is empty, the decoder's first input is in
    config.json, and bilingual models need no tags."""

    name: str
    architecture: str  # class in `transformers`; no other class is loaded
    loader: str  # converter class in `ctranslate2.converters.transformers`
    settings: Mapping[str, bool] = field(default_factory=dict)  # added to the network's config
    tokenizers: tuple[str, ...] = ("sentencepiece.bpe.model", "tokenizer.json")  # best first
    codes: str = ""  # module in `transformers.models` with the language codes
    tags: str  # pattern of language tags in the vocabulary; group 1 is the language
    before: tuple[str, ...] = (SOURCE,)  # tokens before the source
    after: tuple[str, ...] = ("</s>",)  # tokens after the source
    forced: tuple[str, ...] = (TARGET,)  # first tokens of every translation
    start: str | None = "</s>"  # the decoder's first input; None if `forced` comes first
    barred: tuple[str, ...] = ()  # tokens that are never generated

    def layout(
        self, tokens: list[str], languages: Languages, start: str | None = None
    ) -> TokenLayout:
        """Return the token layout, with tags from the vocabulary `tokens`. `start` is the decoder's
        first input in config.json."""
        tags = tags_by_language(tokens, self.tags)
        languages_of = {
            SOURCE: (languages.source_key, languages.source),
            TARGET: (languages.target_key, languages.target),
        }

        def filled(given: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(
                find_tag(*languages_of[token], tags) if token in languages_of else token
                for token in given
            )

        return TokenLayout(
            source_prefix=filled(self.before) if tags or self.forced else (),
            source_suffix=filled(self.after),
            decoder_start=self.start if self.forced else start,
            target_prefix=filled(self.forced),
            barred=self.barred,
        )


MARIAN = Family(
    name="Marian",
    architecture="MarianMTModel",
    loader="BartLoader",
    settings={"normalize_before": False, "normalize_embedding": False},
    tokenizers=("source.spm",),
    tags=r">>(.+)<<",
    before=(TARGET,),
    forced=(),
    barred=("<pad>",),  # the decoder's first input
)
M2M100 = Family(
    name="M2M100",
    architecture="M2M100ForConditionalGeneration",
    loader="M2M100Loader",
    codes="m2m_100.tokenization_m2m_100",
    tags=r"__([a-z]{2,3})__",
)
NLLB = replace(
    M2M100,
    name="NLLB",
    codes="nllb.tokenization_nllb",
    tags=r"([a-z]{3}_[A-Z][a-z]{3})",
)
MBART50 = Family(
    name="mBART-50",
    architecture="MBartForConditionalGeneration",
    loader="MBartLoader",
    settings={"normalize_before": True, "normalize_embedding": True},
    codes="mbart50.tokenization_mbart50",
    tags=r"([a-z]{2,3})_[A-Z]{2}",  # a tag has a region, as in `en_XX`
)
MBART25 = replace(
    MBART50,
    name="mBART-25",
    codes="mbart.tokenization_mbart",
    before=(),
    after=("</s>", SOURCE),
    start=None,
)
MADLAD = Family(
    name="MADLAD",
    architecture="T5ForConditionalGeneration",
    loader="T5Loader",
    tokenizers=("spiece.model", "sentencepiece.model", "tokenizer.json"),
    tags=r"<2([a-z]{2,3}(?:_\w+)?)>",
    before=(TARGET,),
    forced=(),
)
T5 = replace(MADLAD, name="T5", before=())  # the result of `prompt` precedes each source
MT5 = replace(T5, name="mT5", architecture="MT5ForConditionalGeneration", loader="MT5Loader")
ALL_T5 = (MADLAD, T5, MT5)
_KNOWN = "Marian (OPUS-MT), M2M100, NLLB, mBART-25, mBART-50, MADLAD, T5 and mT5"


def find_family(path: Path, config: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> Family:
    """Return the family of a folder, according to its config.json and tokenizer_config.json.

    The result for a T5 model is MADLAD, because only the vocabulary distinguishes the two families.
    The caller reads the vocabulary later.
    """
    kind = config.get("model_type")
    name = str(tokenizer.get("tokenizer_class") or config.get("tokenizer_class") or "")
    if kind == "marian":
        return MARIAN
    if kind == "m2m_100":
        m2m100 = name.startswith("M2M100") or (path / "vocab.json").is_file()
        if m2m100 and not name.startswith("Nllb"):
            return M2M100
        if tokenizer.get("legacy_behaviour") is True:  # as in the first NLLB release
            return replace(NLLB, before=(), after=("</s>", SOURCE))
        return NLLB
    if kind == "mbart":
        # The decoder starts with a language tag in mBART-25, and with `</s>` in mBART-50.
        starts = config.get("decoder_start_token_id") == config.get("eos_token_id", 2)
        return MBART50 if name.startswith("MBart50") or starts else MBART25
    if kind in ("t5", "mt5"):
        return MADLAD if kind == "t5" else MT5
    raise UserError(f"{path}/config.json: unknown model_type {kind!r}; supported are {_KNOWN}")


def prompt(config: Mapping[str, Any], languages: Languages) -> str:
    """Return the text that a T5 model expects before each source, according to config.json."""
    tasks = config.get("task_specific_params") or {}
    prompts = {name: task["prefix"] for name, task in tasks.items() if name[:12] == "translation_"}
    sides = [short_code(of or "?") for of in (languages.source, languages.target)]
    asked = "translation_{}_to_{}".format(*sides)
    if asked not in prompts:
        asked = f"translation_{sides[0].partition('-')[0]}_to_{sides[1]}"
    if prompts and asked not in prompts:
        known = ", ".join(prompts)
        raise UserError(
            f"config.json: task_specific_params has {known}, but no {asked}; add it with its prefix"
        )
    return str(prompts.get(asked, ""))


def read_tokens(folder: Path, family: Family, tokenizer: Mapping[str, Any], size: int) -> list[str]:
    """Return the tokens that the model reads, in id order. `size` is the number of embeddings."""
    if family is MARIAN:
        return read_vocabulary(folder / "vocab.json")
    if (folder / "tokenizer.json").is_file():
        return TokenizerJson(folder / "tokenizer.json").vocabulary()
    if family is M2M100:  # vocab.json has no language tags
        codes = _codes(family)[tokenizer.get("language_codes") or "m2m100"]
        return [*read_vocabulary(folder / "vocab.json"), *(f"__{code}__" for code in codes)]
    model: Any = open_subwords(folder, family.tokenizers)
    pieces = model.vocabulary()
    if family in ALL_T5:
        extra = any(token.startswith("<extra_id_") for token in pieces)
        missing = 0 if extra else max(min(size - len(pieces), 100), 0)
        return [*pieces, *(f"<extra_id_{number}>" for number in reversed(range(missing)))]
    # The model was trained with fairseq, which puts special tokens first.
    return ["<s>", "<pad>", "</s>", "<unk>", *pieces[3:], *_codes(family), "<mask>"]


def read_vocabulary(path: Path) -> list[str]:
    """Read the tokens of a vocab.json in id order."""
    by_token = read_json(path, dict[str, int], "a vocabulary")
    if set(by_token.values()) != set(range(len(by_token))):
        raise UserError(f"{path}: must give each token an id of its own, from 0 on")
    return sorted(by_token, key=by_token.__getitem__)


def _codes(family: Family) -> Any:
    return import_module(f"transformers.models.{family.codes}").FAIRSEQ_LANGUAGE_CODES
