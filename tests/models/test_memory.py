import sys

import numpy as np
import pytest

from models.memory import forget_peak, peak_memory

SIZE = 64 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="the peak can be forgotten on Linux alone")
def test_the_peak_is_that_since_it_was_forgotten():
    forget_peak()
    before = peak_memory()
    held = np.ones(SIZE, np.uint8)
    peak = peak_memory()
    assert before + 0.9 * SIZE < peak < before + 2 * SIZE
    del held
    assert peak_memory() >= peak - (1 << 20)
    forget_peak()
    assert peak_memory() < peak - 0.9 * SIZE
