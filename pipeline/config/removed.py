"""Keys of earlier versions that a configuration may no longer have."""

REMOVED: dict[str, str] = {
    "input.max_characters": "the limit is 2,000 characters; leave the key out",
    "select.exclude_model": "the model is score.sentence_model",
}
"""What to write instead, by dotted key; one entry a line, sorted.

A key in the items of a list is named without their numbers, a key of `select.named.NAME` as the key
of `select`.
"""
