"""What we start listens on loopback: other machines cannot send functions to it."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from paraloom.beam_jobs.runners.loopback import loopback_servers, on_loopback
from tests.listening import exposed, listening
from tests.run_helpers import ROOT, small_config, started


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("Pes štěká.\tA dog barks.\n" * 400)
    config = small_config("run", "pairs.tsv")
    config["input"]["shard_rows"] = 10
    (tmp_path / "config.yaml").write_text(json.dumps(config))
    command = ["ingest", "--config", "config.yaml", "--", "--direct_num_workers", "2"]
    process = started(*command, cwd=tmp_path)
    found: set[str] = set()
    while process.poll() is None:
        found |= listening(process.pid)
        time.sleep(0.01)
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert found, "Beam listens for its workers"
    assert exposed(found) == set()


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_pool(stop: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "paraloom.beam_jobs.runners.flink.pool", "--service_port=0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        port = process.stdout.readline().rstrip().rpartition(":")[2]
        found = listening(process.pid)
        process.send_signal(stop)
    assert process.returncode == 0
    assert {address.split()[1] for address in found} == {port}
    assert exposed(found) == set()


@pytest.mark.parametrize("wildcard", ["[::]:0", "0.0.0.0:0", "[0:0:0:0:0:0:0:0]:0"])
def test_servers_of_any_beam(wildcard: str) -> None:
    with loopback_servers():
        server = grpc.server(ThreadPoolExecutor())
        port = server.add_insecure_port(wildcard)
    here = {address for address in listening(os.getpid()) if address.endswith(f" {port}")}
    assert here
    assert exposed(here) == set()


@pytest.mark.parametrize("address", ["10.0.0.1:0", "[fd00::1]:8099", "host:8099", "unix:/socket"])
def test_addresses_that_someone_named(address: str) -> None:
    assert on_loopback(address) == address
