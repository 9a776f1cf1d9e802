"""A trial of a converted model in a process that may crash."""

import subprocess
import sys
from pathlib import Path

from paraloom.models.errors import one_line
from paraloom.models.nmt.families.base import TokenLayout

_SPARE = 8 << 30  # bytes of address space for libraries and threads
_CODE = """
import contextlib, resource, sys
folder, most, source, prefix = sys.argv[1:]
with contextlib.suppress(Exception):
    resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
import ctranslate2
model = ctranslate2.Translator(folder, compute_type="float32", intra_threads=1)
model.translate_batch([source.split()], [prefix.split()], beam_size=2, max_decoding_length=8)
"""


def try_out(folder: Path, layout: TokenLayout) -> None:
    """Translate a subword. CTranslate2 does not check weights: wrong ones crash a process, or take
    any amount of memory."""
    most = _SPARE + 8 * sum(file.stat().st_size for file in folder.iterdir())
    tokens = [" ".join(of) for of in (layout.source(["▁a"]), layout.target_prefix)]
    command = [sys.executable, "-P", "-c", _CODE, str(folder), str(most), *tokens]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    if done.returncode:
        said = one_line((done.stderr.strip().splitlines() or ["it crashes"])[-1])
        raise RuntimeError(f"its weights do not fit: {said}")
