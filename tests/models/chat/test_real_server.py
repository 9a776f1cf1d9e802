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

import pyarrow as pa
import pytest

from paraloom.beam_jobs import generate
from paraloom.beam_jobs.generate import GenerationJob, GenerationUnit
from paraloom.beam_jobs.io import schema
from paraloom.beam_jobs.io.shards import read_shard, write_shard
from paraloom.beam_jobs.runners.rejections import Limit
from paraloom.models.chat.options import ChatGenerator
from tests.chat_model import SAYS, make_chat_model
from tests.extras import needs

pytestmark = needs("openai", "fastapi", "uvicorn", "accelerate", "transformers")
ROWS = 8


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
    pairs = pa.table(
        {
            "id": [f"pair-{i}" for i in range(ROWS)],
            "source": [f"Pes {i}" for i in range(ROWS)],
            "reference": [f"dog number {i}" for i in range(ROWS)],
        },
        schema.INGEST,
    )
    kinds: dict[str, dict[str, Any]] = {"whole": {}, "cut": {"max_tokens": 4}, "two": {"n": 2}}
    generators = [
        ChatGenerator(kind="chat", name=name, base_url=address, model=model, **more)
        for name, more in kinds.items()
    ]
    job = GenerationJob(
        generators=[(of, of.template()) for of in generators],
        first=0,
        nmt=None,
        model=None,
        languages=("cs", "en"),
        limit=Limit(share=1.0),
    )
    shard = write_shard(str(tmp_path / "in" / "part-0.parquet"), pairs)
    unit = GenerationUnit(index=0, key="key", shard=shard, candidates=4)
    arguments = ["--direct_num_workers", "1"]
    (receipt,) = generate.run([unit], str(tmp_path / "out"), job, arguments).receipts
    table = read_shard(receipt.shards[0])
    assert table["generator"].to_pylist() == ["whole", "two"] * ROWS
    assert {*table["translation"].to_pylist()} == {SAYS}
    assert receipt.rejected == {
        "cut: truncated at max_tokens": ROWS,
        "two: the server gave fewer answers": ROWS,  # this server ignores n
    }
    used = receipt.numbers.generators["whole"]
    assert used.requests == ROWS
    assert used.tokens_out == ROWS * (len(SAYS.split()) + 1)
