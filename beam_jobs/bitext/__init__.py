"""Read bitext files as Arrow record batches.

A valid row without an id gets an id that is made from its texts, and that `ingest` makes unique. A
rejected row without an id gets the id `<position of the file>-<name of the file>:<row>`, such as
`1-train.cs:17`. The name lacks the suffixes of compression and of Parquet, JSON Lines and TMX.

The cleaners in `input.clean` are applied, and white space at both ends of ids and sentences is
removed. A row is rejected if

- the row has the wrong number of columns, or is not a valid JSON object, CSV row or TMX unit;
- a value has the wrong type;
- the source, the reference or a required id (`Bitext.ids` is "given") is missing or empty;
- one of these texts, or a text in a kept column of records, is longer than `max_characters`;
- a column is not valid UTF-8, or contains a control character, U+2028 or U+2029 (line breaks), also
  at its ends. Kept columns of records may contain these characters.

An invalid id that is not required counts as missing.
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
