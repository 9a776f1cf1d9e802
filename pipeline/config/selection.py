"""The section `select`: which pairs become the corpus, and further corpora of the same run."""

import operator
import re
from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from paraloom.beam_jobs.transforms.conditions import Predicate
from paraloom.beam_jobs.transforms.criteria import Criteria, PerSource
from paraloom.models.options import Count, Fraction, InputPath, Nearness, Options

UncheckedFile = Annotated[str, InputPath(checked=False)]
HubModel = Annotated[str, InputPath(copied=False, hub=True)]

CHOSEN = ("auto", "judged")
"""Values of `select.by` with which a stage chooses the score and the deciles."""


class AutoOptions(Options):
    """Automatic selection (`select.by: auto`), by training small encoders on ranges of deciles."""

    score: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Score whose deciles are tried; null: the first of `score.scorers`."""
    model: str = "word-avg"
    """Encoder to train, by name (lstm-avg as in ParaNMT)."""
    pairs: Annotated[int, Field(ge=2)] = 10_000
    """Largest number of pairs to train on; smaller ranges are used whole."""
    seeds: Annotated[int, Field(ge=1, le=100)] = 3
    """Number of times that each range is trained on, with different seeds."""


class SelectOptions(Options):
    """Which pairs become the corpus."""

    by: str = "paragram_similarity"
    """Score whose deciles are selected. auto: deciles are chosen with `labelled`; judged: score
    and deciles are chosen with judgments of the run's pairs (`paraloom judge`); see judging.md."""
    precision: Fraction = 0.9
    """Wanted share of good pairs for `by: judged`. Among the cuts whose Wilson interval begins at
    this share or above, the one that keeps most of the pairs that meet `where` is selected."""
    good: Annotated[float, Field(gt=0, le=100)] = 70.0
    """Least label of a good pair (0 to 100), for `by: judged` and the precision of the corpus; the
    label of a pair with several judges is their mean."""
    labelled: UncheckedFile | list[UncheckedFile] | None = None
    """Labelled pairs for `by: auto` and `loop.rounds`, in the format of STS: a file, a folder, or a
    list of files and folders."""
    auto: AutoOptions = AutoOptions()
    deciles: Annotated[list[Annotated[int, Field(ge=0, le=9)]], Field(min_length=1)] | None = Field(
        default=[8, 9]
    )
    """Deciles to select, from 0 (lowest) to 9 (highest); null: all."""
    max_tokens: Count | None = 30
    """Largest number of Moses tokens on either side; null: no limit."""
    size: Count | None = None
    """Number of pairs to sample at random; null: all."""
    per_source: PerSource = "diverse"
    """The translations of a source to select if `nmt.candidates` is more than 1 and several meet
    all other conditions: the best one, diverse ones, or all."""
    per_generator: Annotated[Fraction | None, Field(exclude_if=operator.not_)] = None
    """Largest share of the corpus from one of the `generators`; null: no limit."""
    max_overlap: Annotated[float, Field(ge=0, le=1)] = 0.5
    """With `per_source: diverse`, the largest overlap of trigrams between two selected translations
    of a source."""
    where: list[str] = Field(default=[])
    """Further conditions, all of which must hold, on a score, its decile or a side's tokens:
    `trigram_overlap <= 0.5`, `unigram_f1_decile in 2..7`, `reference_tokens >= 5`."""
    near_duplicates: Annotated[Nearness | None, Field(exclude_if=operator.not_)] = None
    """Reject a pair that nearly repeats an earlier one which meets all other conditions: the
    Jaccard index of the character 4-grams of each side is at least this; null: near-copies stay."""
    exclude: list[Annotated[str, InputPath(hub=True)]] = Field(default=[])
    """Evaluation sentences: files, folders or data sets of the Hub (`owner/name`,
    `owner/name@revision`). Pairs with a side that equals one, contains one or is contained in one
    are left out; see choosing-pairs.md."""
    exclude_similarity: Annotated[float | None, Field(ge=-1, lt=1)] = None
    """Also leave out pairs with a side whose cosine with an evaluation sentence, computed with
    `score.sentence_model`, is above this; null: no cosines."""
    named: Annotated[dict[str, "NamedSelection | None"], Field(exclude_if=operator.not_)] = Field(
        default={}
    )
    """Further corpora of the run by name, each with the keys of `select` that differ: `strict:
    {deciles: [9]}`; null: the run forgets this corpus; see choosing-pairs.md."""

    @property
    def labelled_paths(self) -> list[str]:
        """Files and folders of labelled pairs."""
        return [self.labelled] if isinstance(self.labelled, str) else list(self.labelled or [])

    @property
    def selections(self) -> dict[str, "NamedSelection"]:
        """The named selections that the run has."""
        return {name: own for name, own in self.named.items() if own is not None}

    def criteria(self) -> Criteria:
        """The criteria that do not depend on other pairs."""
        chosen = None if self.by in CHOSEN else self.deciles  # a stage chooses them later
        deciles = None if chosen is None else tuple(chosen)
        where = tuple(Predicate.parse(text) for text in self.where)
        return Criteria(
            by=self.by, deciles=deciles, where=where, max_tokens=self.max_tokens, size=None, seed=0
        )

    def _check(self) -> None:
        for name in self.named:
            if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,59}", name):
                raise ValueError(
                    f"named: {name!r} cannot be the name of a selection and its folder; use "
                    "letters, digits and . - _"
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
