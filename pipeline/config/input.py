"""The configuration section `input`."""

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
"""The largest number of characters in a sentence. Rows with a longer sentence are rejected."""
_CODE = re.compile("[A-Za-z]{1,8}([_-][A-Za-z0-9]{1,8}){0,7}")  # valid in file names


class InputOptions(Options):
    """The bitext. A run that only trains an encoder on other data can omit this section."""

    format: Format
    """Format of the files."""
    paths: list[InputGlob] | dict[str, InputGlob | list[InputGlob]]
    """A list of files or globs. Format moses: a mapping `{source: …, reference: …}`, in which each
    value is a path or a list of paths. Format hub: names (`owner/name`, `owner/name@revision`) or
    folders of data sets. Format opus: names of corpora (`Books`, `Books@v1`)."""
    columns: dict[str, str] = Field(default={})
    """Names that the files use for columns, such as `{source: czech}`. Formats parquet, jsonl, csv
    and hub: names for `source`, `reference` and `id`. Format pairs, in Parquet: names for
    `reference`, `translation` and `id`. Format tmx: a name for `id`. `translation.cs` names a
    nested column. By default, ids are read from the column `id` (in TMX, from `tuid`). A row
    without an id gets an id that is computed from its texts."""
    keep: list[str] = Field(default=[])
    """Further columns (texts, numbers or booleans) to copy into the corpus and the release.
    Conditions in `where` and `select.where` may name these columns."""
    subset: str | None = None
    """Subset of a data set, for the format hub. null: the only subset or the default subset."""
    split: str = "train"
    """Split of a data set, for the format hub."""
    shard_rows: Count | None = None
    """Number of input lines in a shard. After `ingest`, a shard is the unit of parallel work and of
    resuming. null: 500 to 10,000, depending on the size of the input. If you plan to add input
    later, set a number, so that finished shards remain valid."""
    source_language: str = "cs"
    """Language code of the source side, in any standard (`cs`, `ces`, `cs_CZ`). The code determines
    the tokenisation of the source and the language tag for a multilingual model."""
    target_language: str = "en"
    """Language code of the reference side and therefore of the paraphrases. The code determines the
    tokenisation of references and translations, and the language tag for a multilingual model. With
    `format: text`, this is the language of the text, which is translated into `source_language` and
    back. See languages.md."""
    check_languages: bool = True
    """Check the language codes, the first rows and the translation model. If a language is
    certainly wrong, the command ends. If a language may be wrong, a notice is printed."""
    language_identifier: Annotated[str | None, Field(exclude_if=operator.not_)] = None
    """Your own function that identifies languages for `where` and `check_languages`:
    `FILE.py:NAME`, or `MODULE:NAME` in an installed package. null: fastText's model lid.176. See
    languages.md."""
    license: str | None = None
    """Licence of the bitext, which the data card and the model card show."""
    clean: list[Literal["entities", "whitespace", "nfc"]] = Field(default=[])
    """How to clean source and reference before the pair is checked. entities: replace HTML entities
    by their characters, in one pass. whitespace: replace tabs and line breaks by a space.
    nfc: normalise the text to Unicode's form NFC. See inputs.md."""
    where: list[str] = Field(default=[])
    """Conditions that a row must meet, such as `source_tokens <= 60`, `token_ratio in 0.5..1.25`,
    `source_language = cs` or `identical = no`. All conditions must hold. See choosing-pairs.md."""
    unique: Literal["source", "pair"] | None = None
    """source: translate equal sources in a shard once, and copy the translation to all rows with
    this source. pair: reject a row with the same source and the same reference as an earlier row.
    null: keep and translate all rows."""
    near_duplicates: Annotated[Nearness | None, Field(exclude_if=operator.not_)] = None
    """Reject near-copies of earlier rows. Two rows are near-copies if, on each side, the Jaccard
    index of their character 4-grams is at least this value, such as 0.7. null: keep near-copies.
    See choosing-pairs.md."""

    @property
    def languages(self) -> Languages:
        """The language codes of the two sides, as the user wrote them."""
        return Languages(self.source_language, self.target_language)

    @property
    def conditions(self) -> list[Predicate]:
        """The conditions in `where`, parsed."""
        return [Predicate.parse(text) for text in self.where]

    @property
    def identifier(self) -> OwnIdentifier | None:
        """The user's function for `language_identifier`, if the key is set."""
        return OwnIdentifier.find(entry) if (entry := self.language_identifier) else None

    def accepted(self, pairs: pa.Table) -> pa.Table:
        """Return the pairs that meet the conditions of `where`."""
        source, reference = (pairs[side].combine_chunks() for side in ("source", "reference"))
        why = reasons(source, reference, self.conditions, self.languages, pairs, self.identifier)
        return pairs.filter(pa.array(why == ""))

    @property
    def layout(self) -> Layout:
        """The options that readers of bitext need."""
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
            raise ValueError(f"columns: {name} is unknown; input.format {self.format} has {known}")
