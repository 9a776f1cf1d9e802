"""Keys that a configuration may no longer have, and what to write instead."""

REMOVED: dict[str, str] = {
    "generators.prompt_file": "write the template into prompt (`prompt: |`)",
    "nmt.devices": "the variable CUDA_VISIBLE_DEVICES names the GPUs; leave the key out",
    "nmt.engine": "CTranslate2 translates; leave the key out",
}
