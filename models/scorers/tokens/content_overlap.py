"""Overlap of content words by stem. Inflection and function words are ignored."""

import importlib
from functools import cache, lru_cache
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from paraloom.models.languages import ENGLISH, language_name, short_code
from paraloom.models.scorers.base import scorer
from paraloom.models.scorers.tokens.ngrams import shared_ngrams
from paraloom.models.text.tokens import PairText, TokenIds

# The closed classes of English: articles, pronouns, auxiliaries, conjunctions, prepositions,
# particles, and fragments of contractions in Moses tokens. Negation and numbers count as content.
_FUNCTION_WORDS = """
a an the this that these those some any such what which who whom whose whatever whichever whoever i
me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
her hers herself it its itself they them their theirs themselves oneself there here be am is are was
were been being have has had having do does did doing done will would shall should can could may
might must ought let 's 'm 're 've 'd 'll s ain aren couldn didn doesn don hadn hasn haven isn
mightn mustn needn shouldn wasn weren won wouldn and or but if as than because while whilst although
though so whether when where how why then about above across after against along alongside amid
among amongst around at atop before behind below beneath beside besides between beyond by down
during for from in inside into near of off on onto out outside over past per since through
throughout to toward towards under underneath until up upon via with within also too just very
"""

# Groups of English words that stemming does not unify. Each word is replaced by the first word of
# its group.
_IRREGULAR = """
man men, woman women, child children, person people, foot feet, tooth teeth, wife wives, mouse mice,
goose geese, knife knives, leaf leaves, life lives, half halves, gray grey, not no 't n't cannot, 0
zero, 1 one, 2 two, 3 three, 4 four, 5 five, 6 six, 7 seven, 8 eight, 9 nine, 10 ten, 11 eleven, 12
twelve, begin began begun, bend bent, bite bit bitten, blow blew blown, break broke broken, bring
brought, build built, burn burnt, buy bought, catch caught, choose chose chosen, come came, dig dug,
draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed,
fight fought, find found, fly flew flown, forget forgot forgotten, get got gotten, give gave given,
go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept, know
knew known, lay laid, lead led, lean leant, lend lent, light lit, lose lost, make made, mean meant,
meet met, pay paid, ride rode ridden, rise risen, run ran, say said, see seen, sell sold, send sent,
shake shook shaken, shine shone, shoot shot, show shown, sing sang sung, sit sat, sleep slept, slide
slid, speak spoke spoken, spend spent, spin spun, stand stood, steal stole stolen, stick stuck,
strike struck, swim swam swum, swing swung, take took taken, teach taught, tear tore torn, tell
told, think thought, throw threw thrown, understand understood, wake woke woken, wear wore worn,
write wrote written
"""

_FUNCTION = frozenset(_FUNCTION_WORDS.split())
_GROUPS = map(str.split, _IRREGULAR.split(","))
_FIRST = {form: first for first, *forms in _GROUPS for form in forms}

_LOCK = Lock()  # stemmers are not thread-safe
_WORDS = 1 << 18  # maximum words per process with a cached stem; most corpora have fewer


@scorer(
    meaning="F1 of the stems of the content words; inflection and function words do not count",
    unit="F1 of stems",
)
def content_overlap(pairs: PairText) -> np.ndarray:
    """Return the F1 of content word stems, counted with repetitions: float32 [n] in [0, 1].

    F1 is twice the number of shared stems, divided by the number of all stems. "A man sits on a
    rock" and "The man is sitting on a rock" have the value 1. A content word has a letter or a
    digit, and is not a function word. The value is 1 if neither side has content words.
    """
    ids = content_ids(pairs)
    reference, translation = (_content(side, ids) for side in (pairs.reference, pairs.translation))
    total = reference.lengths + translation.lengths
    f1 = 2 * shared_ngrams((reference, translation), int(ids.max(initial=-1)) + 1, 1)
    return np.where(total > 0, f1 / np.maximum(total, 1), 1.0).astype(np.float32)


def content_ids(pairs: PairText) -> np.ndarray:
    """Return the stem id of each word in the vocabulary: int32 [v]. The id is −1 for function words
    and for tokens without a letter or a digit."""
    words = pairs.vocabulary.to_pylist()
    stems = pa.array([content_stem(word, pairs.language) for word in words], pa.string())
    encoded = stems.dictionary_encode()
    return np.asarray(encoded.indices.fill_null(-1).to_numpy().astype(np.int32))


@lru_cache(_WORDS)
def content_stem(word: str, language: str = ENGLISH) -> str | None:
    """Stem a lower-case token with the Snowball stemmer of the language.

    Return None if the token is not a content word. Words of a language without a stemmer are
    case-folded. Lists of function words and irregular forms exist for English only.

    >>> [content_stem(word) for word in ("sitting", "sat", "the", "n't", ".")]
    ['sit', 'sit', None, 'not', None]
    >>> content_stem("chiens", "fr"), content_stem("psi", "sk")
    ('chien', 'psi')
    """
    if short_code(language) == ENGLISH:
        if word in _FUNCTION:
            return None
        word = _FIRST.get(word, word)
    if not any(map(str.isalnum, word)):
        return None
    stemmer = _stemmer(language)
    if stemmer is None:
        return word.casefold()
    with _LOCK:
        return str(stemmer.stemWord(word))


@cache
def _stemmer(language: str) -> Any:
    """Return a Snowball stemmer written in Python, or None if the language has none. The stemmer
    in C, which `snowballstemmer.stemmer` prefers if installed, may give other stems."""
    name = language_name(language).removesuffix(" Bokmål")
    try:
        module = importlib.import_module(f"snowballstemmer.{name.lower()}_stemmer")
    except ModuleNotFoundError as error:
        if error.name == "snowballstemmer":
            raise
        return None
    return getattr(module, f"{name}Stemmer")()


def _content(side: TokenIds, ids: np.ndarray) -> TokenIds:
    stems = ids[side.ids]
    kept = stems >= 0
    up_to = np.concatenate([[0], np.cumsum(kept)])
    return TokenIds(stems[kept], up_to[side.offsets].astype(np.int32))
