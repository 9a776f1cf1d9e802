"""The configuration section `select`, with the named selections of a run."""

import operator
import re
from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.criteria import Criteria, PerSource
from paraloom.models.options import Count, Fraction, InputFile, InputPath, Nearness, Options

HubModel = Annotated[str, InputPath(copied=False, hub=True)]

CHOSEN = ("auto", "judged")
"""Values of `select.by` with which a stage chooses the deciles and, with `judged`, the score."""


class AutoOptions(Options):
    """Automatic selection (`select.by: auto`), which trains small encoders on ranges of deciles."""

    score: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Score whose deciles are tried. null: the first score in `score.scorers`."""
    model: str = "word-avg"
    """Name of the encoder to train. Wieting & Gimpel (2018) used lstm-avg."""
    pairs: Annotated[int, Field(ge=2, le=10**12)] = 10_000
    """Largest number of pairs for each training. A range with fewer pairs is used in full."""
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    """Number of trainings on each range. Each training has a different seed."""


class SelectOptions(Options):
    """Which pairs become the corpus. Repeated pairs and pairs with equal sides are left out."""

    by: str = "paragram_similarity"
    """Score whose deciles are selected. auto: use the pairs in `labelled` to choose the deciles.
    judged: use people's judgments of the run's pairs (`paraloom judge`) to choose the score and the
    deciles. See judging.md."""
    precision: Fraction = 0.9
    """Least share of good pairs in the deciles that `by: judged` chooses. The lower end of the
    share's Wilson interval must reach this value. If several choices of deciles reach this value,
    the choice with the most pairs is used. Pairs that do not meet `where` are ignored."""
    good: Annotated[float, Field(gt=0, le=100)] = 70.0
    """Least label of a good pair, from 0 to 100. `by: judged` and the measured precision of the
    corpus use this key. If several people judged a pair, its label is the mean of their labels."""
    labelled: InputFile | list[InputFile] | None = None
    """Labelled pairs for `by: auto` and `loop.rounds`: a file or folder of STS or SICK, a file of
    judgments, or a list of paths."""
    auto: AutoOptions = AutoOptions()
    deciles: Annotated[list[Annotated[int, Field(ge=0, le=9)]], Field(min_length=1)] | None = Field(
        default=[8, 9]
    )
    """Deciles to select, from 0 (lowest scores) to 9. null: all deciles."""
    max_tokens: Count | None = 30
    """Largest number of Moses tokens on either side. null: no limit."""
    size: Count | None = None
    """Number of pairs to sample at random. null: all pairs."""
    per_source: PerSource = "diverse"
    """Which translations of a source to select if several translations meet all other conditions.
    best: the best translation. diverse: translations that differ. all: all translations. Sources
    have several translations only with `nmt.candidates` or `generators`."""
    per_generator: Annotated[Fraction | None, Field(exclude_if=operator.not_)] = None
    """Largest share of the corpus that a single generator may contribute. null: no limit."""
    max_overlap: Annotated[float, Field(ge=0, le=1)] = 0.5
    """With `per_source: diverse`, the largest trigram overlap that two selected translations of a
    source may have."""
    where: list[str] = Field(default=[])
    """Further conditions on scores, deciles, numbers of tokens or the columns in `input.keep`. All
    conditions must hold. Examples: `trigram_overlap <= 0.5`, `unigram_f1_decile in 2..7`,
    `reference_tokens >= 5`."""
    near_duplicates: Annotated[Nearness | None, Field(exclude_if=operator.not_)] = None
    """Reject near-copies of earlier pairs. Two pairs are near-copies if, on each side, the Jaccard
    index of their character 4-grams is at least this value. Only pairs that meet all other
    conditions are compared. null: keep near-copies."""
    exclude: list[Annotated[str, InputPath(hub=True)]] = Field(default=[])
    """Evaluation sentences: files, folders or data sets of the Hub (`owner/name`,
    `owner/name@revision`). A pair is rejected if one side equals an evaluation sentence. A pair is
    also rejected if a side and an evaluation sentence share many words: the longer text contains at
    least 70% of the shorter text's sequences of five words. See choosing-pairs.md."""
    exclude_similarity: Annotated[float | None, Field(ge=-1, lt=1)] = None
    """Also reject a pair if the cosine of one side and a sentence in `exclude` is above this value.
    `score.sentence_model` computes the cosines. null: compute no cosines."""
    named: Annotated[dict[str, "NamedSelection | None"], Field(exclude_if=operator.not_)] = Field(
        default={}
    )
    """Further corpora of the run, by name. For each corpus, give the keys that differ from
    `select`, such as `strict: {deciles: [9]}`. `exclude` and `exclude_similarity` always apply to
    all corpora. `NAME: null` removes the corpus NAME from the run.
    See choosing-pairs.md."""

    @property
    def labelled_paths(self) -> list[str]:
        """The files and folders in `labelled`."""
        return [self.labelled] if isinstance(self.labelled, str) else list(self.labelled or [])

    @property
    def selections(self) -> dict[str, "NamedSelection"]:
        """The named selections that are not null."""
        return {name: own for name, own in self.named.items() if own is not None}

    def criteria(self) -> Criteria:
        """The criteria on a pair's columns. If `by` is auto or judged, `deciles` is None."""
        return Criteria(
            by=self.by,
            deciles=None if self.deciles is None or self.by in CHOSEN else tuple(self.deciles),
            where=tuple(map(Predicate.parse, self.where)),
            max_tokens=self.max_tokens,
            size=None,
            seed=0,
        )

    def _check(self) -> None:
        for name in self.named:
            if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,59}", name):
                raise ValueError(
                    f"named: {name!r} cannot be the name of a selection and its folder; use "
                    "letters, digits and . - _, and begin with a letter or digit"
                )


class NamedSelection(SelectOptions):
    """The keys of `select` that differ in a named selection."""

    @model_serializer(mode="wrap")
    def _own_keys(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: of for name, of in dump(self).items() if name in self.model_fields_set}

    def _check(self) -> None:
        if self.named:
            raise ValueError("named: a named selection cannot have named selections")
        if own := sorted(name for name in self.model_fields_set if name.startswith("exclude")):
            raise ValueError(f"{own[0]}: applies to all corpora; set select.{own[0]}")
