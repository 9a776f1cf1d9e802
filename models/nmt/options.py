"""Options of neural translation: the model, decoding and training."""

from typing import Annotated, Any, Literal

from pydantic import Field

from paraloom.models.options import Count, InputFile, InputPath, Options, PositiveNumber, Rate, Size

Precision = Literal["float32", "float16", "bfloat16", "int8", "int8_float16"]
"""Number types of a loaded model."""


class NmtTrainingOptions(Options):
    """Training of a translation model; used if `nmt.model` is null.

    The defaults suit 10,000 to 100,000 short pairs on a laptop's CPU.
    """

    pieces: Size = 4000
    """Size of the SentencePiece vocabulary that both languages share (smaller if the text yields
    fewer pieces)."""
    layers: Size = 3
    """Transformer layers in the encoder, and in the decoder."""
    encoder_layers: Size | None = None
    """Layers in the encoder; null: `layers`. A deep encoder with a shallow decoder (6 and 1)
    decodes faster at about the same BLEU."""
    decoder_layers: Size | None = None
    """Layers in the decoder; null: `layers`."""
    dim: Size = 256
    """Width of the model; even and a multiple of `heads`."""
    heads: Size = 4
    """Attention heads."""
    ffn: Size = 1024
    """Width of the feed-forward layers."""
    dropout: Rate = 0.1
    """Probability that an activation is dropped in training."""
    label_smoothing: Rate = 0.1
    """Probability mass spread evenly over the vocabulary."""
    learning_rate: PositiveNumber = 0.002
    """Peak learning rate of Adam: linear warm-up, then inverse square root decay."""
    warmup: Count = 200
    """Updates during which the learning rate rises."""
    updates: Count = 1000
    """Updates in total."""
    batch_tokens: Count = 4096
    """Target subwords per update."""
    checkpoints: Size = 5
    """Number of evenly spaced checkpoints; the one with the best BLEU on half of `held_out` becomes
    the model."""
    average: Size | None = None
    """Number of last checkpoints whose average is tried as the model, too; null: 3; 1: none."""
    held_out: Count = 500
    """Pairs left out of training: half choose the checkpoint, half measure its BLEU."""

    def _check(self) -> None:
        if self.dim % self.heads or self.dim % 2:
            raise ValueError("dim: must be even and a multiple of heads")
        if self.checkpoints > self.updates:
            raise ValueError("checkpoints: must not be more than updates")


class SamplingOptions(Options):
    """Random translations: every subword is drawn from the model's distribution.

    The same seed and shards give the same translations.
    """

    top_k: Size = 10
    """Number of subwords to draw from, the most probable ones."""
    temperature: PositiveNumber = 1.0
    """Divides the logits: above 1 the translations differ more, below 1 less."""


class NmtOptions(Options):
    """The translation model and how it decodes."""

    model: Annotated[str, InputPath(copied=False, hub=True)] | None = None
    """A model: a folder in fairseq's, Marian's, Hugging Face's or CTranslate2's format, a zip of
    OPUS-MT, or a name on the Hugging Face Hub (`Helsinki-NLP/opus-mt-cs-en@REVISION`, the revision
    is optional); null trains one on the input."""
    tokenizer: InputFile | None = None
    """The tokeniser of a model that was converted to CTranslate2 and has none in its folder: a
    SentencePiece model, `tokenizer.json` or `bpecodes`, or its folder."""
    forward_model: Annotated[str, InputPath(copied=False, hub=True)] | None = None
    """A model in the other direction, from `input.target_language` into `input.source_language`,
    given like `model`. It makes the sources of `input.format: text`. The scorers source_score and
    dual_score use it, too; for them, null trains one on the input."""
    reuse: Annotated[str, InputPath(copied=False, checked=False)] | None = None
    """Folder of another run, also in object storage: its translations by the same model with the
    same options are reused. The run's own translations are always reused; see `resume.md`."""
    beam: Size = 12
    """Beam size; the best hypothesis is the translation."""
    candidates: Annotated[int, Field(ge=1, le=100)] = 1
    """Translations per source to keep, as rows with the same id and a `candidate` number (0 is the
    best): the best in the beam, or samples (`sampling`)."""
    sampling: SamplingOptions | None = None
    """Draw the translations at random, instead of searching with a beam."""
    no_repeat_ngram: Annotated[int, Field(ge=0, le=100)] = 0
    """No sequence of this many subwords occurs twice in a translation, even if the source repeats
    itself; 3 ends loops such as "the man in the man in the". 0: no limit."""
    repetition_penalty: Annotated[float, Field(ge=1, le=10)] = 1.0
    """Above 1, subwords that are already in the translation become less probable (Keskar et al.
    2019; 1.1 to 1.3 are usual), including articles and commas. 1: no penalty."""
    compute_type: Literal["auto", "float32", "float16", "bfloat16", "int8"] = "auto"
    """Number type of the weights: float16 and bfloat16 need a GPU. auto: on a GPU that supports it
    float16 (T5 and MADLAD: bfloat16, because their values exceed float16's); else float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for decoding; auto uses all working GPUs (`CUDA_VISIBLE_DEVICES` limits them)."""
    batch_tokens: Count | None = None
    """Source subwords per batch, including padding; null: fits the CPU's caches or the GPU."""
    max_source_subwords: Annotated[int, Field(ge=1, le=16_000)] = 200
    """Longer sources are rejected. So are translations that do not end within three times the
    source's subwords and 30 more (sources of up to 16, 32, 64, … subwords share a limit)."""
    training: NmtTrainingOptions = NmtTrainingOptions()

    def several(self) -> list[Any]:
        """Options for several translations per source, for keys; empty if there is only one."""
        if self.sampling:
            return [self.candidates, self.sampling.model_dump()]
        return [self.candidates] if self.candidates > 1 else []

    def against_repetition(self) -> dict[str, Any]:
        """Options against repetition that are set, for keys and reports."""
        options = {"no_repeat_ngram", "repetition_penalty"}
        return self.model_dump(include=options, exclude_defaults=True)

    def _check(self) -> None:
        if not self.sampling and self.candidates > self.beam:
            raise ValueError(
                f"candidates: {self.candidates} translations of a source need a beam of as many, "
                f"but beam is {self.beam}; raise it, or set sampling"
            )
        if self.device == "cpu" and self.compute_type in ("float16", "bfloat16"):
            raise ValueError(
                f"compute_type: {self.compute_type} needs a GPU; choose float32 or int8 on a CPU"
            )
