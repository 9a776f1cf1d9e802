"""Keys of earlier versions that a configuration may no longer have."""

REMOVED: dict[str, str] = {
    "embeddings.false_negative_margin": "the nearest sentence is the negative; leave the key out",
    "embeddings.loaders": "a process always reads ahead; leave the key out",
    "embeddings.min_count": "embeddings.max_vocabulary limits the words",
    "embeddings.pairs.weight": "name a file several times in `paths`, or a file with fewer pairs",
    "embeddings.precision": "training is in float32; leave the key out",
    "embeddings.steps": "embeddings.epochs says how long",
}
"""What to write instead, by dotted key; one entry a line, sorted.

A key in the items of a list is named without their numbers, a key of `select.named.NAME` as the key
of `select`.
"""
