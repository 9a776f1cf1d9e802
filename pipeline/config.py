"""The configuration of a run: read, checked and resolved before any work starts."""

from __future__ import annotations

import difflib
import os
import re
import types
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from beam_jobs.io.bitext import Format
from beam_jobs.transforms.predicates import Predicate
from models.embeddings.options import EmbeddingOptions, ParagramOptions
from models.embeddings.tasks import READ_THE_CORPUS
from models.errors import UserError
from models.nmt.options import NmtOptions
from models.scorers import ENCODER, SCORERS


@dataclass(frozen=True, kw_only=True, slots=True)
class InputOptions:
    """The bitext."""

    format: Format
    """czeng16, czeng20, moses or tsv."""
    paths: list[str] | dict[str, str | list[str]]
    """Files or globs; moses: {source: …, reference: …}."""
    shard_rows: int = 10_000
    """Lines of input in a shard: what is translated, and repeated after a kill, as one."""
    max_characters: int = 2_000
    """A longer sentence is rejected."""
    source_language: str = "cs"
    """Names the dictionaries of a model trained here."""
    license: str | None = None
    """Of the bitext; stands in the corpus's own papers."""

    def __post_init__(self) -> None:
        for key in ("shard_rows", "max_characters"):
            if getattr(self, key) < 1:
                raise ValueError(f"{key}: must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreOptions:
    """The scores that every pair gets."""

    scorers: list[str] = field(
        default_factory=lambda: ["translation_score", "trigram_overlap", "paragram_similarity"]
    )
    """One column each; all of them get deciles."""
    paragram: str | None = None
    """Word vectors in text form (`word v1 … vd`); null trains them on `phrases`."""
    phrases: str | None = None
    """PPDB text, tab-separated pairs or a lexicon (`word paraphrase …`); plain or gzip."""
    idf: str | None = None
    """IDF of words in text form (`word idf`), for mean_idf; null counts the references."""
    training: ParagramOptions = field(default_factory=ParagramOptions)
    """How word vectors are trained on `phrases`."""

    def __post_init__(self) -> None:
        if not self.scorers:
            raise ValueError("scorers: names no scorer")
        if len(set(self.scorers)) < len(self.scorers):
            raise ValueError("scorers: names a scorer twice")
        if ENCODER in self.scorers:
            raise ValueError(f"scorers: {ENCODER} comes with the second round; see loop.rounds")
        known = ["translation_score", *(name for name in SCORERS if name != ENCODER)]
        for name in self.scorers:
            if name not in known:
                raise ValueError(f"scorers: {name!r} is unknown; choose from {', '.join(known)}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoOptions:
    """How deciles are chosen by a labelled sample."""

    model: str = "word-avg"
    """The small encoder that is trained for every trial, by name (lstm-avg as in ParaNMT)."""
    pairs: int = 10_000
    """Most pairs in a trial: up to here amount counts, beyond it only how good the pairs are."""
    seeds: int = 3
    """How often every trial is made, each time drawn and trained anew."""

    def __post_init__(self) -> None:
        for key, least in (("pairs", 2), ("seeds", 1)):
            if getattr(self, key) < least:
                raise ValueError(f"{key}: must be at least {least}")


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectOptions:
    """Which pairs become the corpus."""

    by: str = "paragram_similarity"
    """The score whose deciles count; auto: score and deciles are chosen by `labelled`."""
    labelled: str | list[str] | None = None
    """Labelled pairs for `by: auto` and for `loop.rounds`: a file, a folder or a list of them, as
    of STS."""
    auto: AutoOptions = field(default_factory=AutoOptions)
    """How they are chosen."""
    deciles: list[int] | None = field(default_factory=lambda: [8, 9])
    """Tenths to keep, 0 the lowest, 9 the highest; null: no cut by decile."""
    max_tokens: int | None = 30
    """Most Moses tokens on either side; null: no limit."""
    size: int | None = None
    """Rows to draw; null keeps all."""
    where: list[str] = field(default_factory=list)
    """Conditions that must all hold as well, on a score, its decile or a side's tokens:
    `trigram_overlap <= 0.5`, `unigram_f1_decile in 2..7`, `reference_tokens >= 5`."""

    def __post_init__(self) -> None:
        if self.deciles is not None and (
            not self.deciles or not all(0 <= decile <= 9 for decile in self.deciles)
        ):
            raise ValueError("deciles: must be numbers from 0 to 9, or null")
        for key in ("max_tokens", "size"):
            if getattr(self, key) is not None and getattr(self, key) < 1:
                raise ValueError(f"{key}: must be at least 1, or null")

    @property
    def labelled_paths(self) -> list[str]:
        """The labelled pairs' files and folders."""
        return [self.labelled] if isinstance(self.labelled, str) else list(self.labelled or [])


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopOptions:
    """Closing the loop: the encoder scores the corpus that it was trained on."""

    rounds: int = 1
    """How often pairs are selected and an encoder is trained on them; from the second time on by
    how alike the encoder before finds their sides. The best one by `select.labelled` stays."""

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise ValueError("rounds: must be at least 1")


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateOptions:
    """What the trained encoder is tested on."""

    sts: str | None = None
    """Folder of STS files (`<year>/<data set>.tsv`: score, sentence, sentence)."""
    sick: str | None = None
    """Folder of SICK files."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StatisticsOptions:
    """Statistics of all pairs beside those of the corpus; only where this section is."""

    spacy: str | None = None
    """Name or folder of a spaCy pipeline, for the entropy of parses; null leaves it out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """A whole run."""

    run: str
    """Output folder."""
    seed: int = 1
    """Of every random choice."""
    accelerator: str | None = None
    """Beam resource hint for back-translation alone, such as `type:nvidia-l4;count:1`."""
    input: InputOptions | None = None
    """Needed unless embeddings.task is one that does not read the corpus."""
    nmt: NmtOptions = field(default_factory=NmtOptions)
    score: ScoreOptions = field(default_factory=ScoreOptions)
    select: SelectOptions = field(default_factory=SelectOptions)
    statistics: StatisticsOptions | None = None
    embeddings: EmbeddingOptions = field(default_factory=EmbeddingOptions)
    loop: LoopOptions = field(default_factory=LoopOptions)
    evaluate: EvaluateOptions = field(default_factory=EvaluateOptions)

    def __post_init__(self) -> None:
        if not self.run.strip():
            raise ValueError("run: must name a folder")
        if not 0 <= self.seed < 2**32:
            raise ValueError("seed: must be between 0 and 4,294,967,295")
        if self.loop.rounds > 1:
            self._check_rounds()
        if self.input is None:
            if self.embeddings.task in READ_THE_CORPUS:
                raise ValueError("input: is missing")
            return
        score = self.score
        if "paragram_similarity" in score.scorers and not (score.paragram or score.phrases):
            raise ValueError(
                "score.paragram: paragram_similarity needs word vectors; name a file of them here, "
                "or phrase pairs to train them on in score.phrases, or take it out of score.scorers"
            )
        if self.select.by == "auto":
            if not self.select.labelled:
                raise ValueError(
                    "select.labelled: select.by is auto, which chooses deciles by labelled pairs; "
                    "name a file or folder of them"
                )
            if self.select.size == 1:
                raise ValueError("select.size: select.by is auto, and one pair is too few to try")
        elif self.select.by not in self.score.scorers:
            known = ", ".join(self.score.scorers)
            raise ValueError(f"select.by: {self.select.by} is not among score.scorers ({known})")
        for i, condition in enumerate(self.select.where):
            try:
                Predicate.parse(condition).check(score.scorers)
            except ValueError as error:
                raise ValueError(f"select.where[{i}]: {error}") from error

    def _check_rounds(self) -> None:
        if self.embeddings.task not in READ_THE_CORPUS:
            raise ValueError(
                f"loop.rounds: embeddings.task {self.embeddings.task} does not read the corpus, so "
                "a second round would train the same again; set it to 1"
            )
        if not self.select.labelled:
            raise ValueError(
                f"select.labelled: loop.rounds is {self.loop.rounds}, and which round is best is "
                "told by labelled pairs; name a file or folder of them"
            )
        if self.select.deciles is None and self.select.by != "auto":
            raise ValueError(
                f"select.deciles: loop.rounds is {self.loop.rounds}, but where no decile is left "
                "out a second round would train on the same pairs; name deciles"
            )


REMOVED = {
    "sample": "this section was removed, the sample is in pipeline/sample now; remove the section "
    "and name its files in input.paths, score.phrases, select.labelled and evaluate.sts as "
    "configs/sample.yaml does",
}
"""Keys of earlier versions, and what to write instead."""


def read_config(path: str | Path, changes: Sequence[str] = ()) -> Config:
    """Read a YAML file and apply `key.sub=value` changes to it.

    Raises:
        UserError: names the file and the key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise UserError(f"{path}: cannot be read ({reason})") from error
    values = _parse(text, str(path))
    if not isinstance(values, dict):
        raise UserError(f"{path}: not a configuration (key: value)")
    for change in changes:
        _set(values, change)
    for key, instead in REMOVED.items():
        if key in values:
            raise UserError(f"{path}: {key}: {instead}")
    try:
        return _build(Config, values, "")
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error


def _parse(text: str, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}:" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise UserError(f"{where}:{line} {problem}") from error
    except (ValueError, TypeError) as error:  # such as a date with a 13th month, or a list as a key
        raise UserError(f"{where}: {error}") from error


class _Loader(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error, not silently the last one."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _set(values: dict, change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not key:
        raise UserError(f"--set {change}: must be key.sub=value")
    *sections, last = key.split(".")
    for section in sections:
        if values.get(section) is None:
            values[section] = {}
        values = values[section]
        if not isinstance(values, dict):
            raise UserError(f"--set {change}: {section} has no keys below it")
    values[last] = _parse(text, f"--set {change}")


def _build(kind: Any, value: Any, key: str) -> Any:
    """Make `value`, as YAML gives it, into `kind`; ValueError names the key."""
    origin, choices = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _build_section(kind, value, key)
    if origin in (Union, types.UnionType):
        return _build_union(choices, value, key)
    if origin is Literal:
        if value not in choices:
            raise ValueError(f"{key}: {value!r} is none of {', '.join(map(str, choices))}")
        return value
    if origin in (list, tuple):
        if not isinstance(value, list):
            raise ValueError(f"{key}: must be a list, not {_shown(value)}")
        items = [_build(choices[0], item, f"{key}[{i}]") for i, item in enumerate(value)]
        return origin(items)
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{key}: must be key: value, not {_shown(value)}")
        return {name: _build(choices[1], item, f"{key}.{name}") for name, item in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{key}: must be {_NAMES[kind]}, not {_shown(value)}")
    return _expand(value, key) if kind is str else value


_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "key: value",
}


def _build_section(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{key or 'configuration'}: must be key: value, not {_shown(value)}")
    prefix = f"{key}." if key else ""
    hints = get_type_hints(kind)
    for name in value:
        if name not in hints:
            near = difflib.get_close_matches(str(name), hints, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(hints)}"
            raise ValueError(f"{prefix}{name}: unknown key{hint}")
    for item in fields(kind):
        needed = item.default is MISSING and item.default_factory is MISSING
        if needed and item.name not in value:
            raise ValueError(f"{prefix}{item.name}: is missing")
    built = {name: _build(hints[name], item, prefix + name) for name, item in value.items()}
    try:
        return kind(**built)
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from error


def _build_union(choices: tuple, value: Any, key: str) -> Any:
    if value is None and type(None) in choices:
        return None
    rest = [choice for choice in choices if choice is not type(None)]
    if len(rest) == 1:
        return _build(rest[0], value, key)
    for choice in rest:  # by the shape of the value: text, list or mapping
        if isinstance(value, get_origin(choice) or choice):
            return _build(choice, value, key)
    shapes = " or ".join(_NAMES[get_origin(choice) or choice] for choice in rest)
    raise ValueError(f"{key}: must be {shapes}, not {_shown(value)}")


def _expand(text: str, key: str) -> str:
    def variable(found: re.Match) -> str:
        name = found.group(1)
        if name not in os.environ:
            raise ValueError(f"{key}: the environment variable {name} is not set")
        return os.environ[name]

    return re.sub(r"\$\{(\w+)\}", variable, text)


def _shown(value: Any) -> str:
    return "null" if value is None else f"{value!r}"
