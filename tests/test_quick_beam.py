import inspect

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import DebugOptions, DirectOptions, PipelineOptions
from apache_beam.transforms import core

FLAGS = ["--experiments=a", "--experiments", "b", "--direct_num_workers=3", "--runner=X"]


@pytest.mark.parametrize("kind", [DebugOptions, DirectOptions, PipelineOptions])
def test_a_view_has_the_options_of_beams_own(kind: type[PipelineOptions]) -> None:
    own, options = kind(FLAGS), PipelineOptions(FLAGS)
    view = options.view_as(kind)
    assert view._visible_options == own._visible_options
    assert view.get_all_options() == own.get_all_options()
    assert view._all_options is options._all_options
    options.view_as(DebugOptions).experiments.append("c")
    assert options.view_as(DebugOptions).experiments == ["a", "b", "c"]
    assert PipelineOptions(FLAGS).view_as(DebugOptions).experiments == ["a", "b"]


def test_a_method_has_the_arguments_that_python_finds() -> None:
    class Work(beam.DoFn):  # type: ignore[misc]
        def process(self, element: int, window: object = beam.DoFn.WindowParam) -> None: ...

    found = core.get_function_args_defaults(Work().process)
    assert found == ([*inspect.signature(Work().process).parameters], [beam.DoFn.WindowParam])
    found[1].clear()
    assert core.get_function_args_defaults(Work().process)[1] == [beam.DoFn.WindowParam]
