"""Requests a second and memory of the stage `generate`, beside a bare loop with the same client.

    python -m benchmarks.generators [REQUESTS…]

A server on this machine answers each request after 200 ms; 64 requests are under way at once.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from paraloom.beam_jobs import generate
from paraloom.beam_jobs.engine import schema
from paraloom.beam_jobs.engine.rejections import Limit
from paraloom.beam_jobs.engine.shards import write_shard
from paraloom.beam_jobs.generate import GenerationJob, GenerationUnit
from paraloom.models.chat.options import ChatGenerator

SECONDS, AT_ONCE, SHARD = 0.2, 64, 10_000


def through_beam(folder: Path, generator: ChatGenerator, requests: int) -> tuple[float, float]:
    """Requests a second of the stage, and the worker's peak memory in MiB."""
    units = []
    for index, start in enumerate(range(0, requests, SHARD)):
        numbers = range(start, min(start + SHARD, requests))
        columns = [
            [f"{i}" for i in numbers],
            [f"Pes číslo {i} běží." for i in numbers],
            [f"The dog number {i} runs in the snow." for i in numbers],
        ]
        path = str(folder / "in" / f"part-{index:05}.parquet")
        shard = write_shard(path, pa.table(columns, schema.INGEST))
        units.append(GenerationUnit(index=index, key=f"{requests}", shard=shard))
    job = GenerationJob(
        generators=[(generator, generator.template())],
        first=0,
        nmt=None,
        model=None,
        languages=("cs", "en"),
        limit=Limit(share=1.0),
    )
    started = time.monotonic()
    result = generate.run(units, str(folder / f"out-{requests}"), job, [])
    rate = requests / (time.monotonic() - started)
    return rate, max(receipt.peak_memory for receipt in result.receipts) / 2**20


async def bare(generator: ChatGenerator, requests: int) -> float:
    """Requests a second of a loop that keeps nothing."""
    from openai import AsyncOpenAI

    client: Any = AsyncOpenAI(api_key="none", base_url=generator.base_url, max_retries=0)
    waiting = iter(range(requests))

    async def work() -> None:
        for i in waiting:
            message = {"role": "user", "content": f"Reword: the bare dog number {i}"}
            await client.chat.completions.create(model="good", messages=[message])

    started = time.monotonic()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return requests / (time.monotonic() - started)


def main() -> None:
    """Measure, and print a line for each number of requests."""
    numbers = [int(text) for text in sys.argv[1:]] or [10_000, 40_000]
    command = [sys.executable, "-m", "tests.chat_server", "-", str(SECONDS)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as name,
    ):
        try:
            assert server.stdout
            address = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            values: dict[str, Any] = {
                "kind": "chat",
                "name": "bench",
                "model": "good",
                "base_url": address,
            }
            generator = ChatGenerator(**values, concurrency=AT_ONCE)
            print(f"bare loop: {asyncio.run(bare(generator, 5_000)):,.0f} requests/s")
            for requests in numbers:
                rate, memory = through_beam(Path(name), generator, requests)
                print(f"{requests:,} through Beam: {rate:,.0f} requests/s, {memory:,.0f} MiB")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
