"""Checks of the configured languages against the texts and the translation model.

If a language is certainly wrong, a check raises a UserError. If a language may be wrong, the check
prints a notice. With `input.check_languages: false`, the two codes are only compared with each
other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from paraloom.beam_jobs.bitext import READERS, Bitext, read_bitext
from paraloom.models.errors import UserError
from paraloom.models.languages import differ, language_name, short_code
from paraloom.models.nmt.families.base import Languages, NmtModel
from paraloom.models.printing import say
from paraloom.models.text.language_identifier import Spoken, identifier_code, spoken
from paraloom.pipeline.config.input import MAX_CHARACTERS, InputOptions

_ROWS, _FILES = 100, 20  # largest numbers of rows and of files that are read
_SHARE = 0.8  # least share of rows that are clearly in the same wrong language
_CHANCE = 0.2  # largest share of rows that are possibly in the configured language
_NOTICE, _SWAPPED, _CERTAIN = 3, 5, 20
"""Least numbers of rows for a notice, for the error about swapped sides, and for other errors."""
_GO_ON = "if the configuration is right, set input.check_languages: false"


def of_codes(options: InputOptions) -> Iterator[str]:
    """Yield a notice if both sides are configured to have the same language."""
    name = language_name(options.target_language)
    if READERS[options.format].is_mined:
        return
    if short_code(options.source_language) == short_code(options.target_language):
        yield (
            f"input.source_language: equals input.target_language ({name}); "
            "one of them may be wrong"
        )


def check_texts(options: InputOptions, bitexts: Sequence[Bitext]) -> None:
    """Check the languages of the first rows that `input.where` accepts.

    If a file cannot be read, this check is skipped.
    """
    if not options.check_languages:
        return
    some, blocks = bitexts[:: -(-len(bitexts) // _FILES)], []
    try:
        for bitext in some:
            begun = replace(bitext, sha256=())  # verifying the checksum would read the whole file
            rows = read_bitext(begun, rows=-(-_ROWS // len(some)), max_characters=MAX_CHARACTERS)
            blocks.append(next(rows).pairs)
        pairs = options.accepted(pa.Table.from_batches(blocks))
    except (UserError, TypeError, pa.ArrowException):  # `ingest` reports the error
        return
    codes = {"source": options.source_language, "reference": options.target_language}
    if READERS[options.format].is_mined:
        del codes["source"]  # both sides have the same language
    found = {s: spoken(pairs[s], code, options.identifier) for s, code in codes.items()}
    line, certain = judge(found, codes)
    if certain:
        raise UserError(f"{line}; {_GO_ON}")
    if line:
        say(f"paraloom: {line}")


def judge(found: Mapping[str, Spoken], codes: Mapping[str, str]) -> tuple[str, bool]:
    """Find the sides that are not in their configured language.

    Return a message and whether the mistake is certain. Without a mistake, the message is empty. A
    mistake is uncertain if there are few rows, or if the identifier may confuse the found and the
    configured language. A mistake is also uncertain if both sides are in the same language, because
    the first rows may be untranslated.
    """
    known = {side: {short_code(of), identifier_code(of)} for side, of in codes.items()}
    wrong = {
        side: of
        for side, of in found.items()
        if of.rows >= _NOTICE and of.share >= _SHARE and (of.other or 0.0) <= _CHANCE
        if of.language not in known[side]
    }
    certain = [of.other is not None and differ(of.language, codes[s]) for s, of in wrong.items()]
    rows = min((of.rows for of in wrong.values()), default=0)
    source, reference = ("", *(of.language for of in found.values()))[-2:]
    if len(wrong) == 2 and reference in known["source"] and source in known["reference"]:
        name = language_name(reference)
        line = (
            f"input: the first sources are {language_name(source)}, and the first references are "
            f"{name}; swap the two sides in the files, input.paths or input.columns, or swap the "
            f"two language codes to make {name} paraphrases"
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
    """Compare `languages` with the languages that a model's files name, if they name any.

    `key` is the configuration key of the model, for errors.
    """
    (source, target), wanted = model.languages, (languages.source or "", languages.target or "")
    line = f"{key}: {model.path} translates {source} into {target}, not {' into '.join(wanted)}"
    if differ(target, wanted[1]):
        raise UserError(f"{line}; name another model, or correct the codes in input; {_GO_ON}")
    if differ(source, wanted[0]):
        say(f"paraloom: {line}")
