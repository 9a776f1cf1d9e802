"""Bitext files as Arrow record batches, broken rows set apart with a reason.

Formats (UTF-8, a byte order mark is skipped; lines end in LF or CRLF; plain or gzip, told apart by
content, not by name, and gzip members may follow one another as `cat a.gz b.gz` leaves them):

- `czeng16`: 4 tab-separated columns: id, score, source, reference.
- `czeng20`: 6 columns: id, adq_score, cs_lang_score, en_lang_score, source, reference. The empty
  lines between documents are no rows.
- `moses`: two files, line n of one translates line n of the other.
- `tsv`: source, reference or id, source, reference, without a header. The first line of each file
  says which of the two it is.

Where a format has no ids they are made up: `<position of the file>-<its name without .gz>:<line>`,
for instance `1-train.cs:17`; Moses pairs take the name of the source file. They do not depend on
the folder, so the same files give the same ids everywhere.

White space at the ends of ids and sentences is stripped; the text is otherwise left as it is (no
Unicode normalisation, nothing unescaped). A row is rejected, with a reason, if

- it has the wrong number of columns;
- id, source or reference is empty, or longer than `max_characters` (surrounding white space
  counted), or the line as a whole is far longer than that allows;
- any column is not valid UTF-8, or holds a control character (C0, DEL, C1; in Moses files the tab
  too) or one of the separators U+2028 and U+2029, at which some tools would break the line.

Missing, unreadable or empty files, a glob without a match, truncated or corrupt gzip, other
compressions, UTF-16 and Moses files of different length raise `UserError`.
"""

from beam_jobs.io.bitext.files import Bitext, Format, find_bitext
from beam_jobs.io.bitext.rows import Block, read_bitext

__all__ = ["Bitext", "Block", "Format", "find_bitext", "read_bitext"]
