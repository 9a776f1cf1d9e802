"""Caches what Beam computes hundreds of times per job. Small jobs take half the CPU time."""

from copy import deepcopy
from functools import cache
from types import MethodType
from typing import Any

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core


def make_quick(patch: pytest.MonkeyPatch) -> None:
    """Parse flags once for each class of options, and inspect each method of a DoFn once."""
    inspect, inspected = core.get_function_args_defaults, cache(core.get_function_args_defaults)
    parsed = cache(lambda kind, flags: kind(flags)._visible_options)
    view_as = PipelineOptions.view_as

    def arguments(function: Any) -> Any:
        if not isinstance(function, MethodType):
            return inspect(function)
        names, defaults = inspected(function.__func__)
        return names[1:], list(defaults)  # without self

    def view(self: Any, kind: Any) -> Any:
        if self._flags is None:  # Beam reads flags in sys.argv
            return view_as(self, kind)
        own = deepcopy(parsed(kind, tuple(self._flags)))
        for name, value in vars(own).items():
            self._all_options.setdefault(name, value)
        made = object.__new__(kind)
        own = {"_flags": self._flags, "_visible_options": own, "_all_options": self._all_options}
        made.__dict__.update(own)
        return made

    patch.setattr(core, "get_function_args_defaults", arguments)
    patch.setattr(PipelineOptions, "view_as", view)
