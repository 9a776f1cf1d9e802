"""Reading of bitext files as Arrow record batches; invalid rows are rejected with a reason.

`formats` has one reader class per format and says how to add another. Files are UTF-8 (a byte order
mark is skipped), lines end in LF or CRLF. Gzip is recognised by content, not by name, and may
consist of several members, as `cat a.gz b.gz` makes them.

Rows without an id get `<position of the file>-<its name without .gz>:<line>`, for instance
`1-train.cs:17`; Moses pairs use the name of the source file. Such ids do not depend on the folder,
so the same files give the same ids everywhere.

White space around ids and sentences is removed; the text is otherwise unchanged (no Unicode
normalisation, no unescaping). A row is rejected, with a reason, if

- it has the wrong number of columns;
- id, source or reference is empty, or longer than `max_characters` (including surrounding white
  space), or the whole line is far longer than that allows;
- a column is not valid UTF-8, or contains a control character (C0, DEL, C1; in Moses files and
  plain text also the tab) or one of the separators U+2028 and U+2029, at which some tools would
  break the line.

Missing, unreadable or empty files, a glob without a match, truncated or corrupt gzip, other
compressions, UTF-16 and Moses files of different length raise `UserError`.
"""

from paraloom.beam_jobs.io.bitext.formats import READERS, Format, find_bitext, genres, read_bitext
from paraloom.beam_jobs.io.bitext.index import find_ranges
from paraloom.beam_jobs.io.bitext.reader import Bitext, BitextReader, Paths, Range, RowBlock

__all__ = [
    "READERS",
    "Bitext",
    "BitextReader",
    "Format",
    "Paths",
    "Range",
    "RowBlock",
    "find_bitext",
    "find_ranges",
    "genres",
    "read_bitext",
]
