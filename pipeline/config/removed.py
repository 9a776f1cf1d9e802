"""Keys of the configuration that earlier versions had, and what to write instead."""

REMOVED: dict[str, str] = {
    "select.auto.best": "the best range of deciles is selected; leave the key out",
    "select.auto.like_embeddings": "encoders on trial train with small batches; leave the key out",
    "select.per_generator": "a condition of select.where may name the generator; leave the key out",
}
