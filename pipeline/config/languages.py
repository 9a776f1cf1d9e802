"""Whether the languages of a configuration are those of its texts and of its translation model.

What is certain is a UserError, what is not a notice; `input.check_languages: false` wants neither.
"""

from collections.abc import Mapping

import pyarrow as pa

from paraloom.beam_jobs.io.bitext import READERS, Bitext, read_bitext
from paraloom.beam_jobs.transforms.conditions import reasons
from paraloom.models.errors import UserError
from paraloom.models.languages import differ, language_name, short_code
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.printing import say
from paraloom.models.text.language_identifier import Spoken, spoken
from paraloom.pipeline.config.input import MAX_CHARACTERS, InputOptions

_ROWS, _FILES = 100, 20  # rows that are looked at, of so many files
_SHARE = 0.8  # rows that are plainly in a language, if the text is
_CHANCE = (
    0.2  # rows of a text that may be in another language, to the identifier: German in English
)
_NOTICE, _SWAPPED, _CERTAIN = 3, 5, 20  # rows that each needs
_GO_ON = "if all is as you want it, set input.check_languages: false"


def check_texts(options: InputOptions) -> None:
    """Check that the first rows are in the languages that they are said to be in.

    Rows that `input.where` rejects do not count. What is wrong with a file, ingest says.
    """
    try:
        pairs = _first_pairs(options) if options.check_languages else None
    except UserError:
        return
    if pairs is None or not len(pairs):
        return
    codes = {"source": options.source_language, "reference": options.target_language}
    sides = [*codes] if READERS[options.format].has_source else ["reference"]
    found = {side: spoken(pairs[side], codes[side]) for side in sides}
    line, certain = judge(found, codes)
    if certain:
        raise UserError(f"{line}; {_GO_ON}")
    if line:
        say(f"paraloom: {line}")


def judge(found: Mapping[str, Spoken], codes: Mapping[str, str]) -> tuple[str, bool]:
    """A line about what the sides are in, "" if nothing is wrong; and whether that is certain.

    It is not if there are few rows, if the identifier does not know a language or it is near the
    one that is found, or if both sides are in one language: a beginning may be untranslated.
    """

    def doubtful(side: str) -> bool:
        rows, language, share, other = found[side]
        plain = rows >= _NOTICE and share >= _SHARE and (other or 0.0) <= _CHANCE
        return plain and language != short_code(codes[side])

    wrong = [side for side in found if doubtful(side)]
    if not wrong:
        return "", False
    languages = {side: of.language for side, of in found.items()}
    certain = [
        found[side].other is not None and differ(languages[side], codes[side]) for side in wrong
    ]
    rows = min(found[side].rows for side in wrong)
    names = {side: language_name(code) for side, code in languages.items()}
    if [short_code(codes[side]) for side in reversed(codes)] == [*languages.values()]:
        return (
            f"input: the first sources are {names['source']}, the references {names['reference']}: "
            "swap the sides (columns of a file, input.paths or input.columns), or the two codes, "
            f"for {names['reference']} paraphrases"
        ), all(certain) and rows >= _SWAPPED
    keys = {"source": "source_language", "reference": "target_language"}
    said = (
        f"input.{keys[side]}: is {codes[side]} ({language_name(codes[side])}), but "
        f"{found[side].share:.0%} of the first {found[side].rows} {side}s are {names[side]} "
        f"({languages[side]})"
        for side in wrong
    )
    alike = len(found) > len({*languages.values()})
    return "; ".join(said), any(certain) and rows >= _CERTAIN and not alike


def check_model(model: NmtModel, key: str, languages: Languages) -> None:
    """Check that the model of a key translates between the languages, if its files name its own."""
    source, target = model.languages
    wanted = languages.source or "", languages.target or ""
    line = f"{key}: {model.path} translates {source} into {target}, not {' into '.join(wanted)}"
    if differ(target, wanted[1]):
        raise UserError(f"{line}; name another model, or mend the codes in input; {_GO_ON}")
    if differ(source, wanted[0]):
        say(f"paraloom: {line}")


def _first_pairs(options: InputOptions) -> pa.Table:
    """The first rows that `input.where` accepts."""
    reader, layout, blocks = READERS[options.format], options.layout, []
    units = reader.group_files(options.paths, layout)
    some = units[:: -(-len(units) // _FILES)]
    for unit in some:
        columns, places, kept = reader.describe(unit[0], layout)
        bitext = Bitext(
            format=reader.name, paths=unit, name="", columns=columns, places=places, kept=kept
        )
        rows = read_bitext(bitext, rows=-(-_ROWS // len(some)), max_characters=MAX_CHARACTERS)
        blocks.append(next(rows).pairs)
    pairs = pa.Table.from_batches(blocks)
    texts = (pairs[side].combine_chunks() for side in ("source", "reference"))
    why = reasons(*texts, options.conditions, options.languages, pairs)
    return pairs.filter(pa.array(why == ""))
