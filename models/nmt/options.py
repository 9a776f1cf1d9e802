"""Options of neural translation: model, decoding and training."""

from typing import Annotated, Any, Literal

from pydantic import Field

from paraloom.models.options import Count, InputFile, InputPath, Options, PositiveNumber, Rate, Size

Precision = Literal[
    "float32", "float16", "bfloat16", "int8", "int8_float16", "int8_bfloat16", "int8_float32"
]


class NmtTrainingOptions(Options):
    """Training of a translation model, used if `nmt.model` is null. The defaults suit 10,000 to
    100,000 short pairs on a laptop's CPU."""

    pieces: Size = 4000
    """Maximum number of subwords in the SentencePiece vocabulary, which both languages share."""
    layers: Size = 3
    """Number of transformer layers in the encoder and in the decoder."""
    encoder_layers: Size | None = None
    """Number of layers in the encoder. null: `layers`. A deep encoder with a shallow decoder (6
    layers and 1 layer) decodes faster at about the same BLEU."""
    decoder_layers: Size | None = None
    """Number of layers in the decoder. null: `layers`."""
    dim: Size = 256
    """Width of the model. The width must be even and a multiple of `heads`."""
    heads: Size = 4
    """Number of attention heads."""
    ffn: Size = 1024
    """Width of the feed-forward layers."""
    dropout: Rate = 0.1
    """Probability that an activation is dropped during training."""
    label_smoothing: Rate = 0.1
    """Probability mass that is spread evenly over the vocabulary."""
    learning_rate: PositiveNumber = 0.002
    """Peak learning rate of Adam, after a linear warm-up and before inverse square root decay."""
    warmup: Count = 200
    """Number of updates during which the learning rate rises."""
    updates: Count = 1000
    """Total number of updates."""
    batch_tokens: Count = 4096
    """Maximum number of source or target subwords per update, including padding."""
    checkpoints: Size = 5
    """Number of evenly spaced checkpoints. The checkpoint or average (see `average`) with the best
    BLEU on half of `held_out` becomes the model."""
    average: Size | None = None
    """Number of last checkpoints whose average is also tried as a model. null: 3. 1: no average."""
    held_out: Annotated[int, Field(ge=2, le=10**12)] = 500
    """Number of pairs that are not used for training, at most a tenth of all pairs. One half of
    these pairs is used to choose the model, and the other half to measure the model's BLEU."""

    def _check(self) -> None:
        if self.dim % self.heads or self.dim % 2:
            raise ValueError("dim: must be even and a multiple of heads")
        if self.checkpoints > self.updates:
            raise ValueError("checkpoints: must not be more than updates")


class SamplingOptions(Options):
    """Random translations instead of beam search. Each subword is drawn from the model's
    distribution. The same seed and shards give the same translations."""

    top_k: Size = 10
    """Number of most probable subwords to draw from."""
    temperature: PositiveNumber = 1.0
    """Divisor of the logits. A higher temperature gives more varied translations."""


class NmtOptions(Options):
    """The translation model and its decoding."""

    model: Annotated[str, InputPath(copied=False, hub=True)] | None = None
    """The translation model: a zip of OPUS-MT, a name on the Hugging Face Hub (`owner/name`,
    `owner/name@revision`), or a folder in the format of fairseq, Marian, Hugging Face or
    CTranslate2. null: train a model on the input."""
    tokenizer: InputFile | None = None
    """Tokeniser of a model in CTranslate2's format, if the model's folder contains no tokeniser: a
    SentencePiece model, `tokenizer.json`, `bpecodes`, or a folder with such a file."""
    forward_model: Annotated[str, InputPath(copied=False, hub=True)] | None = None
    """A model for the other direction, from `input.target_language` into `input.source_language`,
    in the same forms as `model`. This model makes the sources of `input.format: text`, and computes
    source_score and dual_score. null: if a scorer needs this model, train it on the input."""
    reuse: Annotated[str, InputPath(copied=False, checked=False)] | None = None
    """Folder of another run, on disk or in an object store. A translation in this folder is reused
    if the same model made the translation with the same options. See resume.md."""
    beam: Size = 12
    """Beam size. By default, the best hypothesis becomes the translation."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of translations to keep per source: the best hypotheses of the beam, or samples
    (`sampling`). Each translation becomes a row with the source's id and a number in the column
    `candidate`, 0 for the best."""
    sampling: SamplingOptions | None = None
    """Draw translations at random instead of searching with a beam."""
    no_repeat_ngram: Annotated[int, Field(ge=0, le=100)] = 0
    """No sequence of this many subwords occurs twice in a translation, even if the source repeats a
    phrase. The value 3 prevents loops such as "the man in the man in the". 0: no limit."""
    repetition_penalty: Annotated[float, Field(ge=1, le=10)] = 1.0
    """Values above 1 make subwords less probable if the translation already contains them, even
    articles and commas (Keskar et al. 2019). Usual values are 1.1 to 1.3. 1: no penalty."""
    compute_type: Literal["auto", "float32", "float16", "bfloat16", "int8"] = "auto"
    """Number type of the weights. float16 and bfloat16 need a GPU. auto: float16 on GPUs that
    support float16, and float32 elsewhere. For T5, mT5 and MADLAD, the range of float16 is too
    small, so auto uses bfloat16 instead."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for decoding. auto: all working GPUs in `CUDA_VISIBLE_DEVICES`, or the CPU if no GPU
    works."""
    batch_tokens: Count | None = None
    """Number of source subwords per batch, including padding. null: a number that fits the CPU's
    caches or the GPU."""
    max_source_subwords: Annotated[int, Field(ge=1, le=16_000)] = 200
    """Maximum number of subwords in a source. Longer sources are rejected. Translations of more
    than 3n + 30 subwords are rejected, too. n is the source's number of subwords, rounded up to a
    power of 2 (at least 16)."""
    training: NmtTrainingOptions = NmtTrainingOptions()

    def several(self) -> list[Any]:
        """Return the options for several or random translations per source, or [] if beam search
        gives one translation."""
        if self.sampling:
            return [self.candidates, self.sampling.model_dump()]
        return [self.candidates] if self.candidates > 1 else []

    def against_repetition(self) -> dict[str, Any]:
        """Return the options against repetition whose values are not the defaults."""
        options = {"no_repeat_ngram", "repetition_penalty"}
        return self.model_dump(include=options, exclude_defaults=True)

    def _check(self) -> None:
        if not self.sampling and self.candidates > self.beam:
            raise ValueError(
                f"candidates: {self.candidates} translations of a source need a beam of "
                f"{self.candidates} or more, but beam is {self.beam}; raise beam, or set sampling"
            )
        if self.device == "cpu" and self.compute_type in ("float16", "bfloat16"):
            raise ValueError(
                f"compute_type: {self.compute_type} needs a GPU; choose float32 or int8 on a CPU"
            )
