"""The keys of a configuration, with their types, defaults and descriptions."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr

from paraloom.beam_jobs.bitext import READERS
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.transforms.conditions import COLUMNS, Predicate
from paraloom.models.chat.options import MOST, ChatGenerator, Generators
from paraloom.models.embeddings.options import (
    AnyEmbeddingOptions,
    EmbeddingOptions,
    ParagramOptions,
)
from paraloom.models.languages import ENGLISH, short_code
from paraloom.models.nmt.families.base import Languages
from paraloom.models.nmt.options import NmtOptions
from paraloom.models.options import InputFile, InputPath, Options
from paraloom.models.scorers import ENCODER, SCORERS
from paraloom.models.scorers.columns import ColumnScorer
from paraloom.models.scorers.plugins import ScorerSource, column_of, installed, source_of
from paraloom.pipeline.config.input import InputGlob, InputOptions
from paraloom.pipeline.config.selection import CHOSEN, HubModel, SelectOptions

MODEL_KEYS = {"sentence_similarity": "sentence_model", "cross_encoder": "cross_encoder_model"}
MODEL_KEYS |= {"no_antonyms": "wordnet", "same_roles": "spacy"}
"""The keys for scorers' models and WordNet. Each key is also the name of the scorer's resource."""


class ScoreOptions(Options):
    """The scores of the pairs."""

    scorers: Annotated[list[str], Field(min_length=1)] = Field(
        default=["translation_score", "trigram_overlap", "paragram_similarity"]
    )
    """Scores to compute. Each score becomes a column and gets deciles. To use a scorer of your own,
    give the name that an installed package declares, or `FILE.py:NAME`. paragram_similarity needs
    `paragram` or `phrases`. If none of `scorers`, `paragram` and `phrases` is set,
    paragram_similarity is left out, and the defaults of `select` change to deciles 3 to 9 of
    translation_score. If the run also neither translates nor names a translation model,
    translation_score is left out, too, and `select` takes all deciles of trigram_overlap by
    default. See scorers.md."""
    paragram: InputFile | None = None
    """Word vectors in text form (`word v1 … vd`). null: train word vectors on `phrases`."""
    phrases: InputFile | None = None
    """Phrase pairs, plain or compressed: PPDB text, tab-separated pairs, or a lexicon (`word
    paraphrase …`)."""
    idf: InputFile | None = None
    """IDF of words in text form (`word idf`), for mean_idf. null: compute IDF on the references."""
    sentence_model: HubModel | None = None
    """Model of sentence-transformers for sentence_similarity: a folder, or a name on the Hugging
    Face Hub (`owner/name`, `owner/name@revision`)."""
    cross_encoder_model: HubModel | None = None
    """Cross-encoder of sentence-transformers, for the scorer cross_encoder: a folder, or a name on
    the Hub."""
    compute_type: Literal["auto", "int8"] = "auto"
    """Number type of the weights of sentence_model and cross_encoder_model. auto: float16 on a GPU,
    float32 on a CPU. int8: 8 bits on a CPU, for networks like BERT. int8 is two to three times as
    fast as float32. With MiniLM, int8 moves one pair in eight to another decile."""
    spacy: Annotated[str, InputPath(package=True)] | None = None
    """Name or folder of a spaCy pipeline with a parser, for same_roles."""
    wordnet: InputFile | None = None
    """Folder of WordNet, for no_antonyms. Debian's package wordnet-base installs WordNet in
    /usr/share/wordnet."""
    resources: dict[str, InputFile] = Field(default={})
    """Files or folders that your own scorers read: `NAME: PATH`. NAME is the name of a scorer's
    resource."""
    columns: dict[str, InputGlob | list[InputGlob]] = Field(default={})
    """Scores that another program computed: `NAME: FILES`. The files (paths or globs) are Parquet
    or TSV with ids and values. See scorers.md."""
    training: ParagramOptions = ParagramOptions()

    @property
    def names(self) -> list[str]:
        """The names of the score columns, in the order of the columns."""
        names = [*(column_of(entry) for entry in self.scorers), *self.columns]
        return sorted(names, key=ENCODER.__eq__)  # a later round adds the encoder's column last

    @property
    def sources(self) -> list[ScorerSource]:
        """The places from which to load the scorers that are not built in."""
        own = ("translation_score", *SCORERS)
        return [
            *(source_of(entry) for entry in self.scorers if entry not in own),
            *(ColumnScorer(name, paths) for name, paths in self.columns.items()),
        ]

    def _check(self) -> None:
        known = ["translation_score", *(name for name in SCORERS if name != ENCODER)]
        taken = {*known, ENCODER, *_TAKEN}
        own = [entry for entry in self.scorers if entry not in known]
        for entry in own:
            if column_of(entry) == entry and entry not in (plugins := installed()):
                names = ", ".join([*known, *plugins])
                raise ValueError(f"scorers: {entry!r} is unknown; choose from {names}")
        if len({*self.scorers}) < len(self.scorers):
            raise ValueError("scorers: names a scorer twice")
        for key, name in (
            *(("scorers", column_of(entry)) for entry in own),
            *((f"columns.{name}", name) for name in self.columns),
        ):
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"{key}: {name!r} cannot be the name of a column; use letters, digits and _, "
                    "begin with a letter, and do not end in _decile"
                )
            if name in taken:
                raise ValueError(f"{key}: {name} is already in use; rename your score")
            taken.add(name)
        for name, key in MODEL_KEYS.items():
            if name in self.scorers and getattr(self, key) is None:
                kind = SCORERS[name].resource
                assert kind
                raise ValueError(f"{key}: {name} needs {kind.remedy}")


_NAME = re.compile(r"(?!.*_decile$)[A-Za-z]\w*", re.ASCII)
_TAKEN = {*schema.scored((), generators=True).names, schema.REASON.name, *CHOSEN}
"""Names that a user's score cannot have: columns of pairs, and special values of `select.by`."""


class LoopOptions(Options):
    """Rounds of selection and training."""

    rounds: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of rounds of selection and training. From the second round on, the encoder of the
    previous round scores the pairs, and pairs are selected by this score. The result is the round
    whose encoder agrees best with `select.labelled`."""


class EvaluateOptions(Options):
    """The evaluation of the trained encoder."""

    sts: InputFile | None = None
    """Folder of STS files, `<year>/<data set>.tsv`, with the columns score, sentence, sentence."""
    sick: InputFile | None = None
    """Folder of SICK files."""


class Config(Options):
    """The configuration of a run."""

    run: str
    """Output folder."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed of all random numbers."""
    accelerator: str | None = None
    """Beam resource hint, such as `type:nvidia-l4;count:1`, for the stages that load a model. One
    process uses all GPUs of a machine, so `count` may be higher than 1."""
    max_rejected: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Largest share of rows that a stage before `bucket` may reject. If a stage rejects more rows,
    the run stops. The share is checked from 1,000 rows on, and at the end of the stage. Rejections
    by `input.where`, `input.unique` and `input.near_duplicates` do not count. 1: no limit."""
    input: InputOptions | None = None
    nmt: NmtOptions = NmtOptions()
    generators: Generators = None
    """Generators of candidates. If `generators` is null, only `nmt` makes candidates. See
    generators.md."""
    score: ScoreOptions = ScoreOptions()
    select: SelectOptions = SelectOptions()
    embeddings: AnyEmbeddingOptions = EmbeddingOptions()
    loop: LoopOptions = LoopOptions()
    evaluate: EvaluateOptions = EvaluateOptions()
    _written: dict[str, Any] | None = PrivateAttr(None)  # the keys, with `${NAME}` for variables

    @property
    def written(self) -> dict[str, Any]:
        """The keys as a run records them: `${NAME}` for variables, and URLs without credentials."""
        return dict(_without_credentials(self._written or self.model_dump()))

    @property
    def is_plain_text(self) -> bool:
        """Whether the input is text in one language, from which the stage `pivot` makes sources."""
        return self.input is not None and not READERS[self.input.format].has_source

    @property
    def is_mined(self) -> bool:
        """Whether the input contains pairs in one language, which are not translated."""
        return self.input is not None and READERS[self.input.format].is_mined

    @property
    def languages(self) -> Languages:
        """The two languages of the translation model."""
        return self.input.languages if self.input else Languages()

    @property
    def language(self) -> str:
        """The short code of the language of references and translations."""
        return short_code(self.input.target_language) if self.input else ENGLISH

    @property
    def chats(self) -> list[ChatGenerator]:
        """The generators that are language models."""
        return [of for of in self.generators or () if isinstance(of, ChatGenerator)]

    @property
    def nmt_name(self) -> str | None:
        """The name of the generator of kind `nmt`, if `generators` has such a generator."""
        return next((of.name for of in self.generators or () if of.kind == "nmt"), None)

    @property
    def translates(self) -> bool:
        """Whether back-translation makes candidates."""
        return not self.is_mined and (self.generators is None or self.nmt_name is not None)

    @property
    def has_model(self) -> bool:
        """Whether the run has a translation model, which scores the candidates."""
        return self.translates or (self.nmt.model is not None and not self.is_mined)

    @property
    def variant(self) -> dict[str, bool]:
        """Which optional columns candidates have, as keyword arguments of `schema.translated`."""
        several = self.generators is not None
        candidates = several or (self.translates and self.nmt.candidates > 1)
        return {"candidates": candidates, "generators": several, "nmt": self.has_model}

    @property
    def kept(self) -> list[str]:
        """The columns from `input.keep` and `generators` that conditions may name."""
        kept = self.input.keep if self.input else []
        return [*kept, *[schema.GENERATOR.name] * bool(self.generators)]

    @property
    def places(self) -> list[str]:
        """The folders of the derived runs, relative to the run's folder."""
        rounds = range(1, self.loop.rounds + 1) if self.loop.rounds > 1 else ()
        selections = [f"selections/{name}" for name in self.select.selections]
        return [*(f"rounds/{number}" for number in rounds), *selections]

    def derived(self, place: str) -> Self:
        """Return the configuration of the round or named selection in the folder `place`."""
        kind, _, name = place.partition("/")
        if kind == "selections":
            own = self.select.selections[name]
            changed = {key: getattr(own, key) for key in own.model_fields_set}
            select = self.select.model_copy(update=changed)
            embeddings = self.embeddings.model_copy(update={"selection": None})
            return self.model_copy(update={"select": select, "embeddings": embeddings})
        if name == "1":
            return self
        score = self.score.model_copy(update={"scorers": [*self.score.scorers, ENCODER]})
        by = self.select.by if self.select.by in CHOSEN else ENCODER
        select = self.select.model_copy(update={"by": by})
        return self.model_copy(update={"score": score, "select": select})

    def _check(self) -> None:
        if not self.run.strip():
            raise ValueError("run: must name a folder")
        if self.loop.rounds > 1:
            self._check_rounds()
        if (name := self.embeddings.selection) and name not in self.select.selections:
            raise ValueError(f"embeddings.selection: {name} is not among select.named")
        if self.input is None:
            if self.embeddings.reads_the_corpus:
                raise ValueError("input: is missing")
            return
        keep, own = self.input.keep, bool(self.input.language_identifier)
        _check_each("input.where", self.input.where, lambda of: of.check_untranslated(keep, own))
        if self.is_plain_text:
            self._check_plain_text(self.input)
        if self.is_mined:
            self._check_mined()
        self._leave_out_paragram()
        self._check_generators()
        score = self.score
        used = [n for n in score.scorers if n in SCORERS and SCORERS[n].resource_name == "paragram"]
        if used and not (score.paragram or score.phrases):
            raise ValueError(
                f"score.paragram: {used[0]} needs word vectors; name a file of word vectors here, "
                f"or name phrase pairs in score.phrases, or remove {used[0]} from score.scorers"
            )
        taken = {*_TAKEN, *COLUMNS, *score.names, ENCODER}
        for name in keep:
            if keep.count(name) > 1 or name in taken or name.endswith(schema.decile("")):
                raise ValueError(f"input.keep: {name} is reserved for another column of the pairs")
        self._check_selection("select")
        for name in self.select.selections:
            self.derived(f"selections/{name}")._check_selection(f"select.named.{name}")

    def _check_mined(self) -> None:
        if self.generators is not None:
            raise ValueError("generators: must be null, since input.format pairs is not translated")
        needs = {"translation_score", *(n for n, of in SCORERS.items() if "source" in of.reads)}
        if "scorers" not in self.score.model_fields_set:
            self._leave_out(needs)
        elif lacking := [name for name in self.score.scorers if name in needs]:
            raise ValueError(
                f"score.scorers: {lacking[0]} needs sources or a translation model; input.format "
                f"pairs has neither, so remove {lacking[0]}"
            )

    def _leave_out(self, scorers: Collection[str]) -> None:
        """Leave out default scorers. As `score.scorers` stays unset, `replace` can restore them."""
        self.__dict__["score"] = score = self.score.model_copy()
        score.__dict__["scorers"] = [name for name in score.scorers if name not in scorers]

    def _leave_out_paragram(self) -> None:
        score, select, default = self.score, self.select, SelectOptions().by
        if score.model_fields_set & {"scorers", "paragram", "phrases"}:
            return
        if select.by == default and "by" in select.model_fields_set:
            return
        self._leave_out((default, "" if self.has_model else "translation_score"))
        self.__dict__["select"] = select = select.model_copy()
        if select.by == default:
            select.__dict__["by"] = self.score.scorers[0]
            if "deciles" not in select.model_fields_set:
                select.__dict__["deciles"] = [*range(3, 10)] if self.has_model else None

    def _check_generators(self) -> None:
        if self.generators is None:
            return
        names = [of.name for of in self.generators]
        if len({*names}) < len(names):
            raise ValueError("generators: two generators have the same name")
        if not self.chats or len(names) - len(self.chats) > 1:
            raise ValueError(
                "generators: needs at least one generator of kind chat, and at most one of kind nmt"
            )
        total = sum(of.n for of in self.chats) + self.translates * self.nmt.candidates
        if total > MOST:
            raise ValueError(f"generators: {total} candidates per source exceed the limit, {MOST}")
        lacking = {"translation_score", "dual_score"}.intersection(self.score.scorers)
        if lacking and not self.has_model:
            raise ValueError(
                f"score.scorers: {min(lacking)} needs a translation model; name a model in "
                f"nmt.model, add `kind: nmt` to generators, or remove {min(lacking)}"
            )

    def _check_selection(self, key: str) -> None:
        select, known = self.select, self.score.names
        if select.by == "auto" and not select.labelled:
            raise ValueError(
                f"{key}.labelled: {key}.by is auto, which needs labelled pairs; name their file or "
                "folder"
            )
        if select.by not in (*CHOSEN, *known):
            names = ", ".join(known)
            raise ValueError(f"{key}.by: {select.by} is not among score.scorers ({names})")
        if share := select.per_generator:
            if not (several := self.generators):
                raise ValueError(f"{key}.per_generator: needs several generators")
            if share < (least := 1 / len(several)):
                raise ValueError(
                    f"{key}.per_generator: must be at least {least:.3g} with {len(several)} "
                    "generators"
                )
        _check_each(f"{key}.where", select.where, lambda of: of.check(known, self.kept))

    def _check_plain_text(self, options: InputOptions) -> None:
        for key in ("forward_model", "model"):
            if getattr(self.nmt, key) is None:
                raise ValueError(
                    f"nmt.{key}: is missing; input.format text needs nmt.forward_model, which "
                    "translates into input.source_language, and nmt.model, which translates back"
                )

        def check(of: Predicate) -> None:
            if not of.column.startswith("reference_"):
                raise ValueError(
                    f"{of.column} needs a source, which plain text does not have when it is read; "
                    "use conditions on reference_…"
                )

        _check_each("input.where", options.where, check)

    def _check_rounds(self) -> None:
        if self.select.selections:
            raise ValueError("select.named: needs loop.rounds 1, since each round selects pairs")
        if not self.embeddings.reads_the_corpus:
            raise ValueError("loop.rounds: must be 1 if embeddings does not read the corpus")
        if not self.select.labelled:
            raise ValueError("select.labelled: is missing; loop.rounds needs it to rank rounds")
        if self.select.deciles is None and self.select.by not in CHOSEN:
            raise ValueError("select.deciles: null would give every round the same pairs")


_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"\b(https?://[^\s?]*)\?[^\s,;)]*")


def _without_credentials(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_credentials(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_credentials(item) for item in value]
    return _QUERY.sub(r"\1", _USER.sub("", value)) if isinstance(value, str) else value


def _check_each(key: str, conditions: Sequence[str], check: Callable[[Predicate], object]) -> None:
    for i, text in enumerate(conditions):
        try:
            check(Predicate.parse(text))
        except ValueError as error:
            raise ValueError(f"{key}[{i}]: {error}") from error
