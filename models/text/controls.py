"""Control characters (C0, DEL, C1) and line separators, which texts of pairs must not contain,
because some tools break lines or columns at them."""

import re

CONTROL = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"


def find_control(text: str) -> str | None:
    r"""Describe the first such character in a text, for messages; None if there is none.

    >>> find_control("a\tb"), find_control("a\u2028b"), find_control("a b")
    ('control character U+0009', 'line separator U+2028', None)
    """
    if found := re.search(CONTROL, text):
        kind = "line separator" if found[0] > "\x9f" else "control character"
        return f"{kind} U+{ord(found[0]):04X}"
    return None
