"""Read bitext files as Arrow record batches.

A valid row without an id gets an id that is made from its texts, and that `ingest` makes unique. A
rejected row without an id gets the id `<position of the file>-<name of the file>:<row>`, such as
`1-train.cs:17`. Suffixes of the file name, such as `.gz`, are removed.

White space at both ends of ids and sentences is removed, and the cleaners in `input.clean` are
applied. A row is then rejected if

- the row has the wrong number of columns, or is not a valid JSON object, CSV row or TMX unit;
- a value has the wrong type, or is missing (which columns of `input.keep` permit);
- the id, source or reference is empty or longer than `max_characters`;
- a column is not valid UTF-8, or contains a control character, U+2028 or U+2029 (line breaks).
"""

from paraloom.beam_jobs.bitext.formats import READERS, Format, find_bitext, find_ranges, read_bitext
from paraloom.beam_jobs.bitext.reader import BitextReader
from paraloom.beam_jobs.bitext.rows import Bitext, Layout, Paths, Range, RowBlock

__all__ = [
    "READERS",
    "Bitext",
    "BitextReader",
    "Format",
    "Layout",
    "Paths",
    "Range",
    "RowBlock",
    "find_bitext",
    "find_ranges",
    "read_bitext",
]
