"""Reading of bitext files as Arrow record batches; invalid rows are rejected with a reason.

`formats` lists the reader class of each format and says how to add one.
`paraloom.models.text.files` opens the files. Lines end in LF or CRLF.

A row without an id gets one made from its texts; `ingest` makes it unique by numbering equal rows.
A rejected row without an id is called `<position of the file>-<its name>:<row>`, for instance
`1-train.cs:17`. The name has no suffix for compression or format (`.gz`, `.parquet`, `.jsonl`,
`.tmx`); a Moses pair uses the name of its source file.

White space around ids and sentences is removed. The text is otherwise unchanged (no Unicode
normalisation, no unescaping), unless the layout asks to `clean` it. Then checks reject a row if

- it has the wrong number of columns, or is no valid JSON object, CSV row or TMX unit;
- a value is missing or has the wrong type (kept columns may be empty);
- its id, source or reference is empty or longer than `max_characters` (with the white space around
  it), or the whole line is far longer;
- a column is not valid UTF-8, or contains a control character (C0, DEL, C1; a tab only where tabs
  do not separate columns) or one of U+2028 and U+2029, at which some tools break lines.

A `UserError` reports files that are missing, unreadable, truncated, corrupt, not text (such as
archives) or all empty, globs without a match, missing columns, and Moses files of unequal length.
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
