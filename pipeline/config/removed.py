"""Keys of earlier versions that a configuration may no longer have."""

REMOVED: dict[str, str] = {
    "embeddings.false_negative_margin": "the nearest sentence is the negative; leave the key out",
    "embeddings.loaders": "a process always reads ahead; leave the key out",
    "embeddings.min_count": "embeddings.max_vocabulary limits the words",
    "embeddings.pairs.weight": "name a file several times in `paths`, or a file with fewer pairs",
    "embeddings.precision": "training is in float32; leave the key out",
    "embeddings.steps": "embeddings.epochs says how long",
    "embeddings.track": "logs/tensorboard has the figures; leave the key out",
    "generators.prompt_file": "write the template into prompt (`prompt: |`)",
    "input.max_characters": "the limit is 2,000 characters; leave the key out",
    "nmt.devices": "the variable CUDA_VISIBLE_DEVICES names the GPUs; leave the key out",
    "nmt.engine": "CTranslate2 translates; leave the key out",
    "nmt.training.track": "logs/tensorboard has the figures; leave the key out",
    "score.command_timeout": "a scorer in a Python file runs a program: see docs/scorers.md",
    "score.commands": "a scorer in a Python file runs a program: see docs/scorers.md",
    "select.auto.best": "the best range of deciles is selected; leave the key out",
    "select.auto.like_embeddings": "encoders on trial train with small batches; leave the key out",
    "select.exclude_model": "the model is score.sentence_model",
    "statistics": "leave the section out; `paraloom papers statistics RUN` prints the figures",
}
"""What to write instead, by dotted key; one entry a line, sorted.

A key in the items of a list is named without their numbers, a key of `select.named.NAME` as the key
of `select`.
"""
