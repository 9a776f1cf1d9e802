"""The tables of documents, generated from declarations of scorers, formats, encoders and others.

`make docs` writes the table NAME after the line `<!-- NAME: … -->` of a page, up to `<!-- end -->`.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from paraloom.beam_jobs.bitext.formats import READERS
from paraloom.beam_jobs.engine import schema
from paraloom.models.embeddings.encoders import ENCODERS
from paraloom.models.scorers import SCORERS, Scorer
from paraloom.papers.systems import OURS
from paraloom.pipeline.cli import COMMANDS, PAPERS, Command, application
from paraloom.pipeline.pages.cards import meaning
from paraloom.pipeline.pages.describe import score
from paraloom.pipeline.pages.render import Markdown, code, plain, type_name

_MARKED = re.compile(r"(<!-- (\w+): [^\n]* -->\n).*?(<!-- end -->)", re.S)


def names(page: str) -> list[str]:
    """Return the names of a page's tables.

    >>> names("<!-- columns: of a pair -->\\n<!-- end -->\\n")
    ['columns']
    """
    return [name for _, name, _ in _MARKED.findall(page)]


def filled(page: str) -> str:
    """Return the text of a page with its tables as the code declares them now."""
    return _MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", page)


def table(rows: Iterable[Sequence[object]], *columns: object) -> Markdown:
    """Return a Markdown table that ends in a newline. Whole numbers have separators."""

    def shown(cell: object) -> str:
        text = plain(f"{cell:,}" if isinstance(cell, int) else cell)
        return re.sub(r"(?<!\\)\|", r"\\|", text)

    lines = [columns, [Markdown("---")] * len(columns), *rows]
    return Markdown("".join(f"| {' | '.join(map(shown, line))} |\n" for line in lines))


def _scorers() -> Markdown:
    by_model = score("translation_score").meaning
    given = (code("translation_score"), "≤ 0", "a translation model", by_model)
    rows = [(code(name), _values(of), _needs(of), of.meaning) for name, of in SCORERS.items()]
    return table([given, *rows], "scorer", "values", "needs", "what it measures")


def _values(scorer: Scorer) -> str:
    low, high = ("" if b is None else f"{b:g}".replace("-", "−") for b in scorer.range)
    either = f"≥ {low}" if low else f"≤ {high}" if high else "any"
    found = "0 or 1" if scorer.failure else f"{low} to {high}" if low and high else either
    return found if scorer.higher_is_better else f"{found}; lower is better"


def _needs(scorer: Scorer) -> Markdown:
    """Return what a scorer reads besides the two sides, with keys as code."""
    columns = [code(name) for name in scorer.reads if name not in ("reference", "translation")]
    resource = [scorer.resource.remedy] if scorer.resource else []
    return Markdown(
        "; ".join([*columns, *(re.sub(r"score\.\w+", r"`\g<0>`", r) for r in resource)])
    )


def _formats() -> Markdown:
    rows = []
    for name, of in READERS.items():
        about = (inspect.getdoc(type(of)) or "").partition("\n")[0].removesuffix(".")
        columns = Markdown(", ".join(map(code, of.named if of.is_mined else of.columns)))
        rows.append((code(name), Markdown(about), columns))
    return table(rows, code("input.format"), "what it is", "columns of a row")


def _encoders(*, papers: bool) -> Markdown:
    found = {name: of for name, of in ENCODERS.items() if (name not in OURS) == papers}
    rows = [(code(name), code(of.kind), Markdown(of.meaning)) for name, of in found.items()]
    return table(rows, "encoder", "reads", "what a sentence's vector is")


def _columns() -> Markdown:
    every = Markdown("a column for each name in `score.scorers`: [scorers.md](scorers.md)")
    rows: dict[str, tuple[str, ...]] = {}
    scores, several = "<score>", {"candidates": True, "generators": True}
    by_stage = {  # every column that a run may have
        "ingest": schema.INGEST,
        "back_translate": schema.translated(candidates=True),
        "generate": schema.translated(**several),
        "score": schema.scored((scores,), **several),
        "bucket": schema.bucketed((scores,), **several),
    }
    for stage, columns in by_stage.items():
        for of in columns:
            means = every if of.name == scores else meaning(of.name, "target-language", {})
            rows.setdefault(of.name, (code(of.name), type_name(of.type), stage, means))
    return table(rows.values(), "column", "type", "added by", "meaning")


def _commands() -> Markdown:
    rows: list[tuple[str, str]] = []
    commands = application().commands.values()
    for panel, listed in groupby(commands, lambda of: of.rich_help_panel):  # as in the help
        rows += [(Markdown(f"**{panel}**"), ""), *(_command(of, COMMANDS) for of in listed)]
    return table(rows, "command", "what it does")


def _paper_commands() -> Markdown:
    listed = application().commands["papers"].commands.values()
    rows = [_command(of, PAPERS, "paraloom papers") for of in listed]
    return table(rows, "command", "what it does")


def _command(listed: Any, entries: Sequence[Command], start: str = "paraloom") -> tuple[str, str]:
    """Return what a user must type, and the command's line in the help."""
    found = next((entry for entry in entries if entry.name == listed.name), None)
    words = _required(found.load().params) if found else ["COMMAND"]
    return code(" ".join([start, listed.name, *words])), listed.short_help or listed.help


def _required(parameters: Sequence[Any]) -> Iterator[str]:
    """Yield all arguments, each in the first of its forms, and then the required options."""
    for of in parameters:
        if of.param_type_name == "argument":
            first = of.metavar.partition("|")[0]
            yield first if of.nargs == 1 else f"{first.rstrip('…')}…"
    for of in parameters:
        if of.param_type_name == "option" and of.required:
            yield from (of.opts[0], of.metavar)


TABLES: dict[str, Callable[[], Markdown]] = {
    "scorers": _scorers,
    "formats": _formats,
    "encoders": partial(_encoders, papers=False),
    "columns": _columns,
    "commands": _commands,
    "paper_encoders": partial(_encoders, papers=True),
    "paper_commands": _paper_commands,
}
"""The functions that make the tables."""
