"""Vocabularies of words or trigrams, which map sentences to ids."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paraloom.models.embeddings.ragged_columns import Kind, RaggedIds, offsets_of, ranges
from paraloom.models.errors import UserError, reading
from paraloom.models.files import atomic_file
from paraloom.models.languages import ENGLISH
from paraloom.models.text.files import opened
from paraloom.models.text.tokens import moses_tokens

UNKNOWN = "<unk>"
BEGIN, END = "<s>", "</s>"

Tags = bool | Literal["start", "end"]  # tags of a sentence: both (True), none (False), or only one

_MAGIC = "paraloom-vocabulary"
_TAGS: dict[str, Tags] = {"tags": True, "no-tags": False, "start-tag": "start", "end-tag": "end"}
_HEAD = rf"{_MAGIC} ({'|'.join(get_args(Kind))}) ({'|'.join(_TAGS)}) \d+ ([^ ]*)"
_MAX_DISTINCT = 4_000_000  # maximum number of distinct words while counting; about 200 MB
_MERGE_AT = 1_000_000  # minimum number of unmerged counts before a merge
_CODE = 21  # bits of a Unicode code point; a trigram key has 63 bits


class _Tokens(NamedTuple):
    words: list[str]  # distinct tokens
    codes: NDArray[np.int32]  # [tokens]: index of each token in `words`
    offsets: NDArray[np.int64]  # [sentences + 1]
    lists: pa.ListArray  # [sentences]: the tokens of each sentence


class Vocabulary:
    """Maps sentences to ids, which are rows of an embedding matrix.

    Text is tokenised by Moses' rules for its language, and then lower-cased. The kind decides what
    has an id:

    - `words`: each token.
    - `trigrams`: all windows of three characters in each token, padded with one space on either
      side. For example, `cat` has the trigrams `" ca"`, `"cat"` and `"at "`.
    - `sentence-trigrams`: all windows of three characters in the padded sentence, as in the code of
      ParaNMT's authors. For example, `a cat` has the trigram `"a c"`, too.

    Id 0 represents unknown words or trigrams. If there are tags, ids 1 and 2 represent the start
    tag and the end tag.

    >>> vocabulary = Vocabulary(["a", "dog"], kind="words")
    >>> vocabulary.ids(pa.array(["A dog, a cat", ""]))
    RaggedIds(ids=array([1, 2, 0, 1, 0], dtype=int32), offsets=array([0, 5, 5]))
    """

    def __init__(
        self,
        entries: Sequence[str],
        *,
        kind: Kind = "words",
        tags: Tags = False,
        language: str = ENGLISH,
    ) -> None:
        self.kind: Kind = kind
        self.tags, self.language = tags, language
        special = [UNKNOWN, BEGIN, END] if tags else [UNKNOWN]
        self.words: list[str] = [*special, *entries]
        self.specials = len(special)
        if kind == "words":
            self._ids = {word: i for i, word in enumerate(entries, self.specials)}
            distinct = len(self._ids)
        else:
            keys = _trigram_keys(entries)
            order = np.argsort(keys, kind="stable")
            self._keys = np.append(-1, keys[order])  # -1 is less than all keys
            self._key_ids = np.append(0, order + self.specials).astype(np.int32)
            distinct = len(np.unique(keys))
        if distinct != len(entries):
            raise ValueError("an entry occurs twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, text: pa.StringArray) -> RaggedIds:
        """Return the ids of every sentence. A sentence without tokens has only its tags."""
        return self._look_up(_tokens(text, self.language))

    def _look_up(self, tokens: _Tokens) -> RaggedIds:
        words, codes, offsets, lists = tokens
        if self.kind == "words":
            id_of = self._ids.get
            of_word = np.fromiter((id_of(word, 0) for word in words), np.int32, len(words))
            column = RaggedIds(of_word[codes], offsets)
        else:
            if self.kind == "sentence-trigrams":
                words = pc.binary_join(lists, " ").to_pylist()  # treat each sentence as one token
                codes, offsets = np.arange(len(words), dtype=np.int32), np.arange(len(words) + 1)
            keys, starts = _padded_trigrams(words)
            nearest = np.searchsorted(self._keys, keys, "right") - 1
            trigrams = np.where(self._keys[nearest] == keys, self._key_ids[nearest], np.int32(0))
            lengths = np.diff(starts)[codes]
            within = ranges(starts[codes], lengths)
            column = RaggedIds(trigrams[within], offsets_of(lengths)[offsets])
        return _tag(column, *tag_edges(self.tags)) if self.tags else column

    def save(self, path: Path | str) -> None:
        """Write a UTF-8 file: a header (kind, tags, size, checksum), then one line per entry."""
        entries = self.words[self.specials :]
        body = "".join(f"{word}\n" for word in entries).encode()
        if body.count(b"\n") != len(entries):
            raise ValueError("an entry contains a line feed")
        check = hashlib.sha256(body).hexdigest()[:16]
        (tags,) = (name for name, tags in _TAGS.items() if tags == self.tags)
        head = f"{_MAGIC} {self.kind} {tags} {len(entries)} {check}\n"
        with atomic_file(path) as temporary:
            temporary.write_bytes(head.encode() + body)

    @classmethod
    def load(cls, path: Path | str, language: str = ENGLISH) -> Self:
        """Read a file that `save` wrote. `language` is the language code of the texts."""
        with opened(Path(path)) as stream:
            head, _, body = stream.read().partition(b"\n")
        first = re.fullmatch(_HEAD, head.decode(errors="replace"))
        if first is None:
            raise UserError(f"{path}: not a vocabulary (its first line is not `{_MAGIC} …`)")
        kind: Any
        kind, tags, check = first.groups()
        if hashlib.sha256(body).hexdigest()[:16] != check:
            raise UserError(f"{path}: changed since it was written (its checksum does not fit)")
        with reading(path):
            # Tokens may contain U+0085, at which splitlines() would split.
            entries = body.decode().split("\n")[:-1]
            return cls(entries, kind=kind, tags=_TAGS[tags], language=language)


def tag_edges(tags: Tags) -> tuple[bool, bool]:
    """Return whether a sentence has a start tag, and whether it has an end tag."""
    return tags in (True, "start"), tags in (True, "end")


def tag_count(tags: Tags) -> int:
    """Return the number of tags per sentence."""
    return sum(tag_edges(tags))


def build_vocabularies(
    batches: Iterable[pa.StringArray],
    kinds: Sequence[Kind],
    *,
    max_size: int | None = None,
    tags: Tags = False,
    language: str = ENGLISH,
) -> dict[Kind, Vocabulary]:
    """Build vocabularies of words or trigrams from `batches`, which are read once.

    Entries are ordered by descending count, and then by code point. `max_size` is the maximum
    number of entries, not counting the unknown entry and tags. If there are more than 4 million
    distinct words, the rarest words are dropped to limit memory.
    """
    words, of_sentences = _Counts(), _Counts()
    for batch in batches:
        tokens = moses_tokens(batch, language)
        words.add(*tokens.flatten().value_counts().flatten())
        if "sentence-trigrams" in kinds:
            sentences = pc.binary_join(tokens, " ").value_counts()
            of_sentences.add(*_count_trigrams(*sentences.flatten()))
    built = {}
    for kind in kinds:
        entries, counts = (of_sentences if kind == "sentence-trigrams" else words).merged()
        if kind == "trigrams":
            entries, counts = _count_trigrams(entries, counts)
        table = pa.table({"entry": entries, "count": counts})
        order = pc.sort_indices(table, [("count", "descending"), ("entry", "ascending")])
        entries = table["entry"].take(order[:max_size]).to_pylist()
        built[kind] = Vocabulary(entries, kind=kind, tags=tags, language=language)
    return built


def ids_by_kind(
    vocabularies: Mapping[Kind, Vocabulary], text: pa.StringArray
) -> dict[Kind, RaggedIds]:
    """Return the ids of sentences in several vocabularies of one language."""
    tokens = _tokens(text, next(iter(vocabularies.values())).language)
    return {kind: vocabulary._look_up(tokens) for kind, vocabulary in vocabularies.items()}


def _tokens(text: pa.StringArray, language: str) -> _Tokens:
    tokens = moses_tokens(text, language)
    offsets = tokens.offsets.to_numpy().astype(np.int64)
    encoded = tokens.flatten().dictionary_encode()
    words, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    return _Tokens(words, codes, offsets - offsets[0], tokens)


class _Counts:
    def __init__(self) -> None:
        self.total = pa.schema({"entry": pa.string(), "count": pa.int64()}).empty_table()
        self.pending: list[pa.Table] = []
        self.floor = 0

    def add(self, texts: pa.Array, counts: pa.Array) -> None:
        self.pending.append(pa.table({"entry": texts, "count": counts}))
        if sum(map(len, self.pending)) > max(_MERGE_AT, len(self.total)):
            self.merged()
            while len(self.total) > _MAX_DISTINCT:
                self.floor += 1
                self.total = self.total.filter(pc.greater(self.total["count"], self.floor))

    def merged(self) -> tuple[pa.Array, pa.Array]:
        grouped = pa.concat_tables([self.total, *self.pending]).group_by("entry")
        counted = grouped.aggregate([("count", "sum")]).rename_columns(["entry", "count"])
        self.total, self.pending = counted, []
        return counted["entry"].combine_chunks(), counted["count"].combine_chunks()


def _count_trigrams(words: pa.Array, counts: pa.Array) -> tuple[pa.Array, pa.Array]:
    keys, starts = _padded_trigrams(words.to_pylist())
    weights = np.repeat(counts.to_numpy(), np.diff(starts))
    distinct, inverse = np.unique(keys, return_inverse=True)
    totals = np.bincount(inverse, weights, len(distinct)).astype(np.int64)
    mask = (1 << _CODE) - 1
    points = np.stack([distinct >> 2 * _CODE, distinct >> _CODE & mask, distinct & mask], axis=1)
    text = points.astype("<u4").tobytes().decode("utf-32-le")
    trigrams = [text[i : i + 3] for i in range(0, len(text), 3)]
    return pa.array(trigrams, pa.string()), pa.array(totals)


def _padded_trigrams(words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the trigram keys of padded words, and the offsets of each word's keys, [words + 1]."""
    # Two spaces separate words. Drop windows around these spaces, which cross a word boundary.
    points = np.frombuffer(f" {'  '.join(words)} ".encode("utf-32-le"), "<u4").astype(np.int64)
    windows = points[:-2] << 2 * _CODE | points[1:-1] << _CODE | points[2:]
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    space = points == ord(" ")
    return windows[~(space[1:-1] & (space[:-2] | space[2:]))], offsets_of(lengths)


def _trigram_keys(entries: Sequence[str]) -> NDArray[np.int64]:
    if any(len(entry) != 3 for entry in entries):
        raise ValueError("an entry of a trigram vocabulary does not have three characters")
    points = np.frombuffer("".join(entries).encode("utf-32-le"), "<u4").astype(np.int64)
    first, second, third = points.reshape(-1, 3).T
    return first << 2 * _CODE | second << _CODE | third


def _tag(column: RaggedIds, start: bool, end: bool) -> RaggedIds:
    offsets = column.offsets + (start + end) * np.arange(len(column.offsets))
    ids = np.zeros(offsets[-1], np.int32)
    if start:
        ids[offsets[:-1]] = 1
    if end:
        ids[offsets[1:] - 1] = 2
    ids[ids == 0] = column.ids  # fill the positions between the tags
    return RaggedIds(ids, offsets)
