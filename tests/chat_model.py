"""A tiny language model that is made on the spot, for a real server: it always says `SAYS`."""

from pathlib import Path
from typing import Any

SAYS = "an old dog runs on the red street in that snow"  # each word once
TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% endfor %}{{ ' answer' }}"


def make_chat_model(folder: Path) -> None:
    """Write a Llama of some thousand weights in Hugging Face's format."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    wrapped: Any = PreTrainedTokenizerFast

    marks = ["<s>", "</s>", "<unk>", "answer"]
    words = {word: i for i, word in enumerate(dict.fromkeys([*marks, *SAYS.split()]))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    whole = wrapped(tokenizer_object=tokenizer, chat_template=TEMPLATE, **special)
    whole.save_pretrained(folder)
    size = 32
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=size, intermediate_size=size, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=512, bos_token_id=0, eos_token_id=1,
        pad_token_id=1,
    )  # fmt: skip
    model: Any = LlamaForCausalLM(config)
    said = [words[word] for word in ["answer", *SAYS.split(), "</s>"]]
    with torch.no_grad():  # the layer adds nothing, and each word of the answer brings the next
        model.model.layers[0].self_attn.o_proj.weight.zero_()
        model.model.layers[0].mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(len(words), size))
        model.lm_head.weight.zero_()
        model.lm_head.weight[said[1:], said[:-1]] = 10.0
    model.save_pretrained(folder)
