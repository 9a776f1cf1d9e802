"""The client and the job against `transformers serve`, with a model that is trained on the spot."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paraloom.beam_jobs.transforms.answer_files import GenerateMeasurements
from tests.beam_jobs.test_generate import PAIRS, chat, job, run, unit
from tests.run_helpers import needs

pytestmark = needs("openai", "fastapi", "uvicorn", "accelerate", "transformers")
ROWS = 8
SAYS = "an old dog runs on the red street in that snow"  # always; each word once
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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address of the server, and the name of its model."""
    folder = tmp_path_factory.mktemp("chat-model")
    make_chat_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder)]
    more = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([*command, *more], stdout=log, stderr=log, env=environment)
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read()
                break
            except urllib.error.URLError:
                assert server.poll() is None, (folder / "log").read_text()[-500:]
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        server.kill()
        server.wait()


def test_candidates_of_a_real_server(served: tuple[str, str], tmp_path: Path) -> None:
    address, model = served
    kinds: dict[str, dict[str, Any]] = {"whole": {}, "cut": {"max_tokens": 4}, "two": {"n": 2}}
    work = job(*(chat(name, address, model=model, **more) for name, more in kinds.items()))
    table, receipt = run(tmp_path, work, unit(tmp_path, work, PAIRS.slice(0, ROWS)))
    assert table["generator"].to_pylist() == ["whole", "two"] * ROWS
    assert {*table["translation"].to_pylist()} == {SAYS}
    assert receipt.rejected == {
        "cut: truncated at max_tokens": ROWS,
        "two: the server gave fewer candidates than n": ROWS,  # this server ignores n
    }
    used = receipt.measured(GenerateMeasurements).generators["whole"]
    assert used.requests == ROWS
    assert used.tokens_out == ROWS * (len(SAYS.split()) + 1)
