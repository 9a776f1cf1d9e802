"""Reading of bitext files as Arrow record batches; invalid rows are rejected with a reason.

`formats` has the reader class of each format, or imports it, and says how to add another. Files are
opened as `paraloom.models.text.files` says; lines end in LF or CRLF.

Rows without an id get `<position of the file>-<its name>:<row>`, for instance `1-train.cs:17`; the
name has no `.gz` and the like, nor `.parquet`, `.jsonl`, `.tmx`; Moses pairs use that of the source
file. Such ids do not depend on the folder, so the same files give the same ids everywhere.

White space around ids and sentences is removed; the text is otherwise unchanged (no Unicode
normalisation, no unescaping), unless the layout says how to `clean` it. A row is rejected, after
that, with a reason, if

- it has the wrong number of columns, or is no JSON object, no CSV, or no well-formed unit of TMX;
- a value is missing, or of another type (but kept columns may have no value);
- id, source or reference is empty, or longer than `max_characters` (including surrounding white
  space), or the whole line is far longer than that allows;
- a column is not valid UTF-8, or contains a control character (C0, DEL, C1; where tabs do not
  separate columns also the tab) or one of the separators U+2028 and U+2029, at which some tools
  would break the line.

Missing, unreadable, truncated or corrupt files, none that is not empty, a glob without a match,
archives and other files without text, missing columns and Moses files of different length raise
`UserError`.
"""

from paraloom.beam_jobs.bitext.formats import (
    READERS,
    Format,
    find_bitext,
    find_ranges,
    read_bitext,
)
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
