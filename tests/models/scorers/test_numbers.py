"""Numbers that programs write, in any of the usual forms, are those that Python's `float` reads."""

import numpy as np
import pyarrow as pa
import pytest

from paraloom.models.scorers.elsewhere.numbers import numbers

VALUES = [0.0, -0.5, 3.0, 123456.75, 2.5e-7, -6e20]


@pytest.mark.parametrize("form", ["{!r}", "{:e}", "{:+E}", "{:.0e}", "{:f}", "{:+g}", " {:g}\r"])
def test_a_number_in_the_forms_of_other_programs(form: str) -> None:
    texts = [form.format(value) for value in VALUES]
    values, known = numbers(pa.array(texts))
    assert known.all()
    assert values.tolist() == np.array([float(text) for text in texts], np.float32).tolist()


def test_what_only_resembles_a_number() -> None:
    texts = ["", "1e", "e5", "1e+", ".", "+", "--1", "1 2", "1,5", "0x1", "1_000", "1e5.0", None]
    values, known = numbers(pa.array(texts))
    assert not known.any()
    assert np.isnan(values).all()
