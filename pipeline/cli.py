"""The command line, `paraloom COMMAND …`.

To add a command, write a module below `pipeline/commands/` that defines a function `command`, and
add an entry to `COMMANDS`. Typer derives the command's arguments from the function's signature. A
command's module is imported only when the command runs, so that help and completion are fast.
"""

import importlib
import inspect
import io
import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from paraloom.models.errors import UserError
from paraloom.models.memory import import_fast
from paraloom.models.printing import INTERRUPTED, Lossy, not_text, say, show
from paraloom.pipeline.commands.boundary import in_a_line, is_interrupt

PANELS = {
    "corpus": "Build a corpus",
    "run": "Look at a run",
    "model": "Use a model",
    "papers": "The papers",
}
"""Titles of the groups of commands in the help."""

STAGES = "corpus.stages"

_BEAM = "Options after -- are for Beam. Example: -- --direct_num_workers 2"
_PAPERS = "paraloom.papers"


class Command(NamedTuple):
    """An entry in the list of commands."""

    name: str
    module: str  # name of the module in the package `folder`
    summary: str  # one line for the list of commands; the docstring of `command` adds the details
    beam: bool = False  # whether the command accepts Beam's options after `--`
    literal: bool = False  # whether arguments may begin with "-", as some ids of pairs do
    folder: str = "paraloom.pipeline.commands"
    systems: bool = False  # whether `load` also imports `paraloom.papers.systems`

    @property
    def panel(self) -> str:
        """The title of the group that lists this command in the help."""
        return PANELS.get(self.module.partition(".")[0], "Commands")

    def load(self) -> Any:
        """Import the command's module and return the click command that Typer builds from it."""
        if self.systems:
            importlib.import_module(f"{_PAPERS}.systems")  # registers the papers' systems
        name = f"{self.folder}.{self.module}"
        import_fast(name)
        function = sys.modules[name].command
        paragraphs = f"{self.summary}.\n\n{inspect.getdoc(function)}".split("\n\n")
        details = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        app = typer.Typer(add_completion=False)
        app.command(self.name, help=details, epilog=_BEAM if self.beam else None)(function)
        return typer.main.get_command(app)


_on_beam = partial(Command, beam=True)
COMMANDS = (
    Command("sample", "corpus.sample", "Copy the sample to a new folder"),
    Command("init", "corpus.init", "Write a configuration for some files"),
    _on_beam("corpus", STAGES, "Run all stages of a run"),
    _on_beam("ingest", STAGES, "Read the bitext into pairs"),
    _on_beam("back-translate", STAGES, "Run the stages up to translation"),
    _on_beam("score", STAGES, "Run the stages up to scoring"),
    _on_beam("bucket", STAGES, "Run the stages up to the deciles"),
    _on_beam("select", "corpus.select", "Run the stages up to selection"),
    _on_beam("train-nmt", STAGES, "Train the translation model"),
    _on_beam("train-paragram", STAGES, "Train word vectors on phrase pairs"),
    _on_beam("train-embeddings", "corpus.train_embeddings", "Train an encoder on pairs"),
    _on_beam("estimate", "corpus.estimate", "Estimate time, cost and disk"),
    _on_beam("preview", "corpus.preview", "Run the stages on a sample of the input"),
    _on_beam("status", "run.status", "Show the progress of a run, wherever it runs"),
    _on_beam("explain", "run.explain", "Show why a pair is selected or not", literal=True),
    _on_beam("compare", "run.compare", "Compare the rows and values of two runs"),
    _on_beam("contamination", "run.contamination", "Find evaluation sentences in a corpus"),
    _on_beam("publish", "run.publish", "Make a release of a corpus, and upload it"),
    _on_beam("generators", "run.generators", "Compare the generators of a run"),
    Command("judge", "run.judge", "Judge pairs of a run in the browser"),
    _on_beam("agreement", "run.agreement", "Show how well scores agree with judgments"),
    _on_beam("frontier", "run.frontier", "Compare selections by meaning and wording"),
    Command("doctor", "run.doctor", "Check libraries, engines and devices, or describe a model"),
    Command("embed", "model.embed", "Turn sentences into vectors"),
    Command("similarity", "model.similarity", "Score the similarity of sentence pairs"),
    Command("mine", "model.mine", "Find paraphrases among sentences of one language"),
    Command("evaluate", "model.evaluate", "Evaluate on STS and SICK, and measure speed and size"),
)

_data_analysis = partial(Command, folder=_PAPERS)
_analysis = partial(_data_analysis, systems=True)
_TRAIN = "Train one of the papers' other systems"
PAPERS = (
    _on_beam("train", "corpus.train_embeddings", _TRAIN, systems=True),
    *(entry._replace(systems=True) for entry in COMMANDS if entry.module.startswith("model.")),
    _analysis("transfer", "analyses.transfer", "Evaluate on transfer tasks"),
    _analysis("mteb", "analyses.mteb_tasks", "Evaluate on tasks of MTEB"),
    _analysis("compare-models", "analyses.compare_models", "Show where two models disagree"),
    _analysis("decoder-spaces", "analyses.decoder_spaces", "Compare encoder and decoders"),
    _analysis("gate-analysis", "analyses.gate_analysis", "Show which words the gates let through"),
    _data_analysis("statistics", "analyses.statistics", "Compare the statistics of corpora"),
    _data_analysis("extract-phrases", "analyses.phrase_table", "Extract a phrase table", beam=True),
    _analysis("evaluate-phrases", "analyses.phrase_tests", "Evaluate on phrase tasks"),
)
"""The commands of `paraloom papers`. Only these commands import the package `paraloom.papers`."""


class _LazyGroup(TyperGroup):
    """A group that imports the module of a command only when the command runs."""

    entries: tuple[Command, ...]

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        found, listed, rest = super().resolve_command(ctx, args)
        if listed is None:
            return found, None, rest
        entry = next((entry for entry in self.entries if entry.name == found), None)
        if entry is None:
            return found, listed, rest  # `listed` is the group `papers`
        if ctx.obj and not entry.beam:
            raise UserError(f"{found} accepts no Beam options")
        if entry.literal and not {"-h", "--help"} & set(rest):
            # Reorder to `--json FILE -- ARGUMENTS`, because an id may begin with "-".
            split = (of.split("=", 1) if of.startswith("--json=") else [of] for of in rest)
            rest = [part for parts in split for part in parts]
            at = rest.index("--json") if "--json" in rest else len(rest)
            rest = [*rest[at : at + 2], "--", *rest[:at], *rest[at + 2 :]]
        return found, entry.load(), rest


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    The code is 1 if `compare` found a difference, 2 after an error, and 130 after an interrupt.
    """
    _prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    # By default, waiting threads of torch keep their cores busy, which slows down other threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    logging.getLogger().setLevel(logging.ERROR)  # Beam warns about unused cloud services
    logging.getLogger("fairseq.tasks").setLevel(logging.ERROR)  # it warns about tensorboardX
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.jit")  # from fairseq
    try:
        for argument in given:
            if problem := not_text(argument):
                raise UserError(f"{argument!r}: this argument {problem}")
        code = application().main(
            given[:end], prog_name="paraloom", standalone_mode=False, obj=given[end + 1 :]
        )
    except SystemExit as error:  # Typer and rich exit if stdout is a closed pipe
        return 2 if error.code else 0
    except BaseException as error:  # a panic in a Rust library is not a subclass of `Exception`
        if not is_interrupt(error):
            say(f"paraloom: {in_a_line(error)}")
            return 2
        code = 130
    if code == 130:
        if arguments is None:  # a second Ctrl-C while threads end would print a traceback
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        say(INTERRUPTED)
    return code or 0


def _prepare_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if not isinstance(sys.stderr, Lossy):
        # If the shell has closed the standard error stream, the null device takes its place.
        sys.stderr = Lossy(sys.stderr or Path(os.devnull).open("w"))  # noqa: SIM115


def application() -> Any:
    """Build the group of all commands, including the group `papers`."""
    completion = "paraloom --install-completion installs completion for your shell."
    root = _group(_root, COMMANDS, f"paraloom COMMAND --help describes a command. {completion}")
    papers = _group(_papers, PAPERS)
    papers.name, papers.rich_help_panel = "papers", PANELS["papers"]
    papers.short_help = "Train the papers' other systems, and run the papers' analyses"
    root.add_command(papers)
    return root


def _group(callback: Any, entries: tuple[Command, ...], epilog: str | None = None) -> Any:
    app = typer.Typer(cls=_LazyGroup, add_completion=epilog is not None, epilog=epilog)
    app.callback(context_settings={"help_option_names": ["-h", "--help"]})(callback)
    group: Any = typer.main.get_command(app)
    group.entries = entries
    for entry in entries:
        listed = TyperCommand(entry.name, help=entry.summary, rich_help_panel=entry.panel)
        group.add_command(listed)
    return group


def _papers() -> None:
    """Train the papers' other systems, and run the papers' analyses."""


def _print_version(asked: bool) -> None:
    if asked:
        show(f"paraloom {metadata.version('paraloom')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Build paraphrase corpora and paraphrastic sentence embeddings from bitext."""


if __name__ == "__main__":
    sys.exit(main())
