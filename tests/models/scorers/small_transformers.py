"""Small models of sentence-transformers with random weights, written as the Hub has them.

Only tests that write one import Transformers, which takes seconds.
"""

from pathlib import Path
from typing import Any

import torch

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS += ["a", "the", "dog", "cat", "man", "runs", "sits", "fast", ".", ","]


def write_bert(folder: Path, *, labels: int | None = None) -> Path:
    """A network of BERT's kind with its tokeniser; with `labels`, a classifier of pairs."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertModel,
        PreTrainedTokenizerFast,
    )

    torch.manual_seed(1)
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = BertConfig(vocab_size=len(WORDS), intermediate_size=64, initializer_range=0.2, **sizes)
    network: Any
    if labels is None:
        network = BertModel(config)
    else:
        config.num_labels = labels
        network = BertForSequenceClassification(config)
    network.save_pretrained(folder)
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    make: Any = PreTrainedTokenizerFast
    fast = make(tokenizer_object=tokenizer, model_max_length=64, **names)
    fast.save_pretrained(folder)
    return folder


def write_sentence_model(folder: Path) -> Path:
    """A model that gives sentence vectors: mean pooling over a small BERT."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer

    words = Transformer(str(write_bert(folder.with_name(f"{folder.name}.bert"))))
    pooling = Pooling(words.get_word_embedding_dimension())
    SentenceTransformer(modules=[words, pooling], device="cpu").save(str(folder))
    return folder
