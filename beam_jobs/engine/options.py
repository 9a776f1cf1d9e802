"""Parse and check Beam's options. Beam is imported in functions, because the import is slow."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from paraloom.beam_jobs import storage
from paraloom.beam_jobs.storage import remote
from paraloom.models.cpu import cores
from paraloom.models.errors import UserError

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

DATAFLOW = "DataflowRunner"
_VISIBLE = "gs://"  # scheme of paths that Dataflow's workers can read
_WITHOUT_SERVER = (None, "", "DirectRunner", "FnApiRunner", DATAFLOW)
_WORKERS = re.compile(r"--direct_num_workers[ =](\d+)")


def runner_of(arguments: Sequence[str]) -> str | None:
    """Return the runner that the user chose, or None."""
    from apache_beam.options.pipeline_options import StandardOptions

    runner: str | None = parse_options(arguments).view_as(StandardOptions).runner
    return runner


def local_workers(arguments: Sequence[str]) -> int:
    """Number of workers on this machine: `--direct_num_workers`, or the number of cores."""
    given = _WORKERS.findall(" ".join(arguments))
    return (int(given[-1]) if given else 0) or cores()


def threads_here(arguments: Sequence[str]) -> int | None:
    """Threads of a local job with one process. If `--runner` is given, None (all cores)."""
    elsewhere = any(argument.startswith("--runner") for argument in arguments)
    return None if elsewhere else local_workers(arguments)


def only_workers(arguments: Sequence[str]) -> bool:
    """Whether there are no options other than `--direct_num_workers`."""
    return not _WORKERS.sub("", " ".join(arguments)).strip()


def check_visible(key: str, path: str) -> None:
    """Check that Dataflow's workers can read the path of a configuration key."""
    if not path.startswith(_VISIBLE):
        raise UserError(f"{key}: {path}: Dataflow workers cannot read it; it must be on gs://")


def connect(arguments: Sequence[str], paths: Sequence[str] = ()) -> None:
    """Configure object stores with Beam's options, and check access to the buckets of `paths`."""
    paths = [path for path in paths if storage.is_remote(path)]
    if not paths and only_workers(arguments):
        return
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import GoogleCloudOptions

    options = parse_options(arguments)
    FileSystems.set_options(options)  # Beam does the same for pipelines and workers
    # Also check Beam's own locations. Otherwise Beam tries for 10 minutes to find credentials.
    cloud = options.view_as(GoogleCloudOptions)
    paths += filter(None, (cloud.temp_location, cloud.staging_location))
    buckets = {"/".join(path.split("/")[:3]): path for path in paths if storage.is_remote(path)}
    for path in buckets.values():
        remote.check_access(path)


@cache
def _declare() -> type:
    """Declare the option `--on_interrupt`; Beam collects options from subclasses."""
    from apache_beam.options.pipeline_options import PipelineOptions

    class InterruptOptions(PipelineOptions):
        @classmethod
        def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
            parser.add_argument("--on_interrupt", choices=("leave", "cancel"))

    return InterruptOptions


def parse_options(arguments: Sequence[str]) -> PipelineOptions:
    """Parse Beam's options; raise UserError if they are wrong."""
    from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

    _declare()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            options = PipelineOptions(list(arguments))
            parsers: list[argparse.ArgumentParser] = []
            options.get_all_options(add_extra_args_fn=parsers.append)  # parses the arguments
    except SystemExit as error:  # argparse printed its usage and the error
        reason = printed.getvalue().strip().rpartition("error: ")[2]
        raise UserError(f"Beam options: {reason}") from error
    _, unknown = parsers[0].parse_known_args(arguments)
    # A job server may accept unknown options. Other runners ignore them without an error.
    if unknown and options.view_as(StandardOptions).runner in _WITHOUT_SERVER:
        name = unknown[0].partition("=")[0]
        if not name.startswith("-"):
            raise UserError(f"Beam options: {name}: no option takes this value")
        known = [option for action in parsers[0]._actions for option in action.option_strings]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(f"Beam options: {name}: no such option{hint}")
    if (workers := options.view_as(DirectOptions).direct_num_workers) < 0:
        raise UserError(f"Beam options: --direct_num_workers {workers}: must be 0 or more")
    return options
