"""A tiny language model that is made on the spot, for a real server: it always says `SAYS`."""

from pathlib import Path
from typing import Any

SAYS = "an old dog runs on the red street in that snow"  # each word once: easy to learn
TEMPLATE = "{% for m in messages %}{{ m['content'] }} {% endfor %}{{ ' answer' }}"


def make_chat_model(folder: Path) -> None:
    """Train a Llama of some thousand weights in seconds, and write it in Hugging Face's format."""
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
    torch.manual_seed(1)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=512,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )
    answer = torch.tensor([words[word] for word in ["answer", *SAYS.split(), "</s>"]])
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(200):
        prompt = torch.randint(2, len(words), (8, 5 + step % 40))
        prompt[torch.rand(prompt.shape) < 0.7] = words["<unk>"]
        ids = torch.cat([prompt, answer.expand(8, -1)], 1)
        labels = ids.clone()
        labels[:, : prompt.shape[1] + 1] = -100
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
