"""The keys of `input`."""

import operator
import re
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from paraloom.beam_jobs.bitext import READERS, Format, Layout
from paraloom.beam_jobs.transforms.conditions import Predicate, reasons
from paraloom.models.languages import no_code, short_code
from paraloom.models.nmt.families.base import Languages
from paraloom.models.options import Count, InputPath, Nearness, Options
from paraloom.models.text.cleaning import CLEANERS
from paraloom.models.text.language_identifier import OwnIdentifier

InputGlob = Annotated[str, InputPath(copied=False, checked=False)]

MAX_CHARACTERS = 2_000
"""Longer sentences are rejected."""
_CODE = re.compile("[A-Za-z]{1,8}([_-][A-Za-z0-9]{1,8}){0,7}")  # a code may become a file's name


class InputOptions(Options):
    """The bitext; required unless `embeddings.task` does not read the corpus."""

    format: Format
    """Format of the files."""
    paths: list[InputGlob] | dict[str, InputGlob | list[InputGlob]]
    """Files or globs. moses needs `{source: …, reference: …}`; hub needs data sets (`owner/name`,
    `owner/name@revision`) or folders like one; opus needs names of corpora (`Books`,
    `Books@v1`)."""
    columns: dict[str, str] = Field(default={})
    """Names of the columns `source`, `reference` and `id` in parquet, jsonl, csv and hub, if they
    differ; a nested column is named `translation.cs`. If `id` is not set, a column `id` (in
    TMX `tuid`) is used if it exists; a row without an id gets one that is made from its texts."""
    keep: list[str] = Field(default=[])
    """Further columns (text, numbers, true or false) to copy into corpus and release; `where` and
    `select.where` may name them."""
    subset: str | None = None
    """The subset of a data set of format hub; null: its only subset, or the default one."""
    split: str = "train"
    """The split of a data set of format hub."""
    shard_rows: Count | None = None
    """Input lines in a shard, which is the unit of parallel work and of resuming; null: 500 to
    10,000, by the size of the input. With a number, a growing corpus keeps its finished shards."""
    source_language: str = "cs"
    """Language code of the source side, in any standard (`cs`, `ces`, `cs_CZ`); determines the tag
    for a multilingual model and the tokenisation of the source, and names the dictionaries of a
    model trained here."""
    target_language: str = "en"
    """Language code of the reference side, and so of the paraphrases; determines the tag for a
    multilingual model and the tokenisation of references and translations; see languages.md. With
    `format: text` it is the language of the text, which is translated into `source_language` and
    back."""
    check_languages: bool = True
    """Check the two codes, and that the first rows and the translation model are in these
    languages. A certain mistake ends the command; a possible mistake prints a notice. false:
    no check."""
    language_identifier: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Your own function to identify languages for `where` and `check_languages`: `FILE.py:NAME`, or
    `MODULE:NAME` in an installed package; null: fastText's lid.176. See languages.md."""
    license: str | None = None
    """Licence of the bitext; copied into data card and model card."""
    clean: list[Literal["entities", "whitespace", "nfc"]] = Field(default=[])
    """How source and reference are cleaned before they are checked. entities: HTML entities become
    their characters, once; whitespace: tabs, line feeds and U+2028 become a space; nfc: text is
    normalised to Unicode's form NFC. The changed pairs are counted; see inputs.md."""
    where: list[str] = Field(default=[])
    """Conditions on a pair before its translation, all of which must hold: `source_tokens <= 60`,
    `token_ratio in 0.5..1.25`, `source_language = cs`, `identical = no`; see choosing-pairs.md."""
    unique: Literal["source", "pair"] | None = None
    """source: equal sources of a shard are translated once, and every row gets the translation;
    pair: a repeated pair of source and reference is rejected; null: neither."""
    near_duplicates: Annotated[Nearness | None, Field(exclude_if=operator.not_)] = None
    """Reject a row that nearly repeats an earlier one: the Jaccard index of the character 4-grams
    of each side is at least this, such as 0.7; null: near-copies stay. See choosing-pairs.md."""

    @property
    def languages(self) -> Languages:
        """The languages of the two sides, as the user writes them."""
        return Languages(self.source_language, self.target_language)

    @property
    def conditions(self) -> list[Predicate]:
        """The parsed conditions of `where`."""
        return [Predicate.parse(text) for text in self.where]

    @property
    def identifier(self) -> OwnIdentifier | None:
        """The function that `language_identifier` names."""
        return OwnIdentifier.find(entry) if (entry := self.language_identifier) else None

    def accepted(self, pairs: pa.Table) -> pa.Table:
        """The pairs that meet the conditions of `where`."""
        source, reference = (pairs[side].combine_chunks() for side in ("source", "reference"))
        why = reasons(source, reference, self.conditions, self.languages, pairs, self.identifier)
        return pairs.filter(pa.array(why == ""))

    @property
    def layout(self) -> Layout:
        """The columns, languages and cleaning that readers apply."""
        return Layout(
            columns=self.columns,
            keep=tuple(self.keep),
            languages=(short_code(self.source_language), short_code(self.target_language)),
            codes=(self.source_language, self.target_language),
            subset=self.subset,
            split=self.split,
            clean=tuple(kind for kind in CLEANERS if kind in self.clean),
        )

    def _check(self) -> None:
        for key in ("source_language", "target_language"):
            if not _CODE.fullmatch(code := getattr(self, key)):
                raise ValueError(f"{key}: must be a code such as cs or ces_Latn, not {code!r}")
            if self.check_languages and (problem := no_code(code)):
                raise ValueError(f"{key}: {problem}")
        if (entry := self.language_identifier) and not re.fullmatch(r".+:\w+", entry):
            raise ValueError(f"language_identifier: {entry!r} must be FILE.py:NAME or MODULE:NAME")
        if READERS[self.format].is_mined:
            self.__dict__["source_language"] = self.target_language
            if self.unique == "source":
                raise ValueError("unique: input.format pairs has no source; set `unique: pair`")
        named = READERS[self.format].named
        for name in self.columns.keys() - {*named}:
            known = ", ".join(named) or "none"
            raise ValueError(f"columns: {self.format} takes {known} here, not {name}")
