"""An index of the lines of a bitext: ranges that workers read independently.

A range begins where a shard does. In a gzip file, its reading begins with the member that holds its
beginning, so a file of one member is one range.
"""

from collections import deque
from contextlib import ExitStack
from io import BufferedReader
from itertools import zip_longest

import numpy as np
import xxhash

from paraloom.beam_jobs.io.bitext.lines import CHUNK, Member, Span, open_text
from paraloom.beam_jobs.io.bitext.reader import Bitext, Range, different_lengths


def find_ranges(bitext: Bitext, lines: int) -> list[Range]:
    """Divide a bitext into ranges of at least `lines` lines, except the last.

    `lines` is a multiple of the lines of a shard.
    """
    found: list[Range] = []
    before = passed = 0
    with ExitStack() as stack:
        files = zip_longest(bitext.paths, bitext.sha256)
        scans = [_Scan(stack.enter_context(open_text(*file))) for file in files]
        while True in [scan.more() for scan in scans]:  # each reads what is next
            if passed and all(scan.may_divide() for scan in scans):
                found.append(_range(before, passed, scans))
                before = passed
            counts = [passed + scan.advance(lines) for scan in scans]
            if len(set(counts)) > 1:
                left = [scan.advance(None) for scan in scans]
                raise different_lengths(bitext, map(sum, zip(counts, left, strict=True)))
            passed = counts[0]
        found.append(_range(before, passed, scans))
    return found


def _range(before: int, passed: int, scans: list["_Scan"]) -> Range:
    return Range(before, passed - before, tuple(scan.divide() for scan in scans))


class _Scan:
    """Counts the lines of a file, and digests its spans."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream, self._text, self._last = stream, b"", b"\n"
        self._members: deque[Member] = getattr(stream.raw, "members", deque())
        self._at = stream.tell()
        self._begin()

    def _begin(self) -> None:
        self._start, self._digest = self._at, xxhash.xxh3_128()
        self._first = self._member()

    def _member(self) -> Member | None:
        """The member that the next line is in; None in plain files."""
        while len(self._members) > 1 and self._members[1].start <= self._at:
            self._members.popleft()
        return self._members[0] if self._members else None

    def more(self) -> bool:
        """Whether there is more text."""
        self._text = self._text or self._stream.read(CHUNK)
        return bool(self._text)

    def advance(self, lines: int | None) -> int:
        """Pass so many lines, or all, and return how many there were."""
        passed = 0
        while (lines is None or passed < lines) and self.more():
            found, end = self._text.count(b"\n"), len(self._text)
            if lines is not None and passed + found >= lines:
                ends = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord("\n"))
                found, end = lines - passed, int(ends[lines - passed - 1]) + 1
            self._digest.update(self._text[:end])
            self._last, self._text = self._text[end - 1 : end], self._text[end:]
            self._at += end
            passed += found
        if self._last != b"\n" and not self.more():
            self._last = b"\n"  # the last line has no end, and is counted once
            passed += 1
        return passed

    def may_divide(self) -> bool:
        """Whether a new span here is read without most of the one before."""
        member = self._member()
        return member is None or member.start > self._start

    def divide(self) -> Span:
        """The span until here; another one begins."""
        size, digest = self._at - self._start, self._digest.hexdigest()
        span = Span(self._start, size, digest, self._first)
        self._begin()
        return span
