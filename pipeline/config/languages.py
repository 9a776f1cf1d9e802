"""Whether the languages of a configuration are those of its texts and of its translation model.

What is certain is a UserError, what is not a notice; `input.check_languages: false` wants neither.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from paraloom.beam_jobs.bitext import Bitext, read_bitext
from paraloom.models.errors import UserError
from paraloom.models.languages import differ, language_name, short_code
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.printing import say
from paraloom.models.text.language_identifier import Spoken, spoken
from paraloom.pipeline.config.input import MAX_CHARACTERS, InputOptions

_ROWS, _FILES = 100, 20  # rows that are looked at, of so many files
_SHARE = 0.8  # of rows that are plainly in a language, if the text is
_CHANCE = 0.2  # of rows of a text that may be in another one, to the identifier: German in English
_NOTICE, _SWAPPED, _CERTAIN = 3, 5, 20  # rows that each needs
_GO_ON = "if all is as you want it, set input.check_languages: false"


def of_codes(options: InputOptions) -> Iterator[str]:
    """A notice if both sides are said to be in one language."""
    name = language_name(options.target_language)
    if short_code(options.source_language) == short_code(options.target_language):
        yield f"input.source_language: is {name}, as input.target_language is; one may be wrong"


def check_texts(options: InputOptions, bitexts: Sequence[Bitext]) -> None:
    """Check that the first rows, but for those that `input.where` rejects, are in the languages
    that they are said to be in. What is wrong with a file, ingest says.
    """
    if not options.check_languages:
        return
    try:
        pairs = _first_pairs(options, bitexts)
    except (UserError, TypeError, pa.ArrowException):  # the last two of a kept column's condition
        return
    codes = {"source": options.source_language, "reference": options.target_language}
    line, certain = judge({side: spoken(pairs[side], code) for side, code in codes.items()}, codes)
    if certain:
        raise UserError(f"{line}; {_GO_ON}")
    if line:
        say(f"paraloom: {line}")


def judge(found: Mapping[str, Spoken], codes: Mapping[str, str]) -> tuple[str, bool]:
    """A line about what the two sides are in, "" if nothing is wrong; and whether that is certain.

    It is not if there are few rows, if the identifier does not know a language or it is near the
    one that is found, or if both sides are in one language: a beginning may be untranslated.
    """

    def doubtful(side: str) -> bool:
        rows, language, share, other = found[side]
        plain = rows >= _NOTICE and share >= _SHARE and (other or 0.0) <= _CHANCE
        return plain and language != short_code(codes[side])

    wrong = {side: found[side] for side in found if doubtful(side)}
    certain = [of.other is not None and differ(of.language, codes[s]) for s, of in wrong.items()]
    rows = min((of.rows for of in wrong.values()), default=0)
    source, reference = (of.language for of in found.values())
    if len(wrong) == 2 and [reference, source] == [*map(short_code, codes.values())]:
        name = language_name(reference)
        line = (
            f"input: the first sources are {language_name(source)}, the references {name}: swap "
            "the sides (columns of a file, input.paths or input.columns), or the two codes, for "
            f"{name} paraphrases"
        )
        return line, all(certain) and rows >= _SWAPPED
    lines = (
        f"input.{'source' if side == 'source' else 'target'}_language: is {codes[side]} "
        f"({language_name(codes[side])}), but {of.share:.0%} of the first {of.rows} {side}s are "
        f"{language_name(of.language)} ({of.language})"
        for side, of in wrong.items()
    )
    return "; ".join(lines), any(certain) and rows >= _CERTAIN and source != reference


def check_model(model: NmtModel, key: str, languages: Languages) -> None:
    """Check that the model of a key translates between the languages, if its files name its own."""
    (source, target), wanted = model.languages, (languages.source or "", languages.target or "")
    line = f"{key}: {model.path} translates {source} into {target}, not {' into '.join(wanted)}"
    if differ(target, wanted[1]):
        raise UserError(f"{line}; name another model, or mend the codes in input; {_GO_ON}")
    if differ(source, wanted[0]):
        say(f"paraloom: {line}")


def _first_pairs(options: InputOptions, bitexts: Sequence[Bitext]) -> pa.Table:
    """The first rows that `input.where` accepts; of no file but these is anything read."""
    some, blocks = bitexts[:: -(-len(bitexts) // _FILES)], []
    for bitext in some:
        begun = replace(bitext, sha256=())  # a checksum would need the whole file
        rows = read_bitext(begun, rows=-(-_ROWS // len(some)), max_characters=MAX_CHARACTERS)
        blocks.append(next(rows).pairs)
    return options.accepted(pa.Table.from_batches(blocks))
