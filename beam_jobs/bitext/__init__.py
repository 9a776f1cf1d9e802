"""Reading of bitext files as Arrow record batches; invalid rows are rejected with a reason.

`formats` lists the reader class of each format and says how to add a format.

The id of a row without an id is made from its texts, and `ingest` makes it unique. A rejected row
without an id is called `<position of the file>-<its name>:<row>`, for instance `1-train.cs:17`. The
name has no suffix such as `.gz` or `.jsonl`. For a Moses pair, it is the name of the source file.

White space at the ends of ids and sentences is removed. The text is otherwise unchanged, unless
`input.clean` names a way to clean it. Then a row is rejected if

- it has the wrong number of columns, or is no valid JSON object, CSV row or TMX unit;
- a value is missing or has the wrong type, except in columns that the user keeps;
- its id, source or reference is empty or longer than `max_characters`, or the line is far longer;
- a column is not valid UTF-8, or contains a control character, U+2028 or U+2029 (line breaks).

A `UserError` reports files that are missing, unreadable, truncated, corrupt, no text, or all empty.
It also reports globs without a match, missing columns, and Moses files of unequal length.
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
