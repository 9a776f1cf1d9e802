"""The option that says what Ctrl-C does to a job elsewhere; Beam knows it once it is imported."""

from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions


class InterruptOptions(PipelineOptions):
    """What Ctrl-C does to a remote job."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument("--on_interrupt", choices=("leave", "cancel"))
