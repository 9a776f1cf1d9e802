import subprocess
import sys

import pytest

from tests.run_helpers import ROOT

# In a process of its own: an old one may still hold the memory that its allocator gives again.
PROGRAM = """
import numpy as np
from paraloom.models.memory import forget_peak, peak_memory
from tests.run_helpers import ROOT


size = 64 << 20
forget_peak()
before = peak_memory()
held = np.ones(size, np.uint8)
peak = peak_memory()
assert before + 0.9 * size < peak < before + 2 * size, (before, peak)
del held
assert peak_memory() >= peak - (1 << 20)
forget_peak()
assert peak_memory() < peak - 0.9 * size
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be forgotten on Linux alone")
def test_the_peak_is_that_since_it_was_forgotten() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, check=True)
