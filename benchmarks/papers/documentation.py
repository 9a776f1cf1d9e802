"""Generates documentation from the code.

`python -m paraloom.papers.documentation` writes `configs/schema.json`, `docs/configuration.md` and
`docs/results.schema.json`. In other pages, it updates the table between `<!-- NAME: … -->` and
`<!-- end -->`.
"""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from paraloom.beam_jobs.bitext.formats import READERS
from paraloom.beam_jobs.engine import schema as pair_schema
from paraloom.models.embeddings.encoders import ENCODERS
from paraloom.models.scorers import SCORERS, Scorer
from paraloom.papers.options import SystemConfig
from paraloom.papers.systems import OURS
from paraloom.pipeline.cli import COMMANDS, PAPERS, Command, application
from paraloom.pipeline.commands.corpus.estimate import Estimated
from paraloom.pipeline.commands.corpus.select import Counted
from paraloom.pipeline.commands.model.evaluate import Evaluated
from paraloom.pipeline.commands.model.mine import Mining
from paraloom.pipeline.commands.run.agreement import Agreement
from paraloom.pipeline.commands.run.compare import Comparisons
from paraloom.pipeline.commands.run.contamination import Counts
from paraloom.pipeline.commands.run.doctor import Doctor
from paraloom.pipeline.commands.run.explain import Explanation
from paraloom.pipeline.commands.run.publish import Published
from paraloom.pipeline.commands.run.status import Status
from paraloom.pipeline.pages.cards import meaning
from paraloom.pipeline.pages.describe import score
from paraloom.pipeline.pages.generators import Generators
from paraloom.pipeline.pages.render import Markdown, code, plain, type_name
from paraloom.pipeline.pages.tradeoffs import Curve

ROOT = Path(__file__).resolve().parents[2]
SCHEMA, PAGE = ROOT / "configs" / "schema.json", ROOT / "docs" / "configuration.md"
RESULTS = ROOT / "docs" / "results.schema.json"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FORMS: dict[str, TypeAdapter[Any]] = {
    "status": TypeAdapter(Status),
    "estimate": TypeAdapter(Estimated),
    "explain": TypeAdapter(Explanation),
    "compare": TypeAdapter(Comparisons),
    "contamination": TypeAdapter(Counts),
    "frontier": TypeAdapter(Curve),
    "generators": TypeAdapter(Generators),
    "select": TypeAdapter(Counted),
    "agreement": TypeAdapter(Agreement),
    "publish": TypeAdapter(Published),
    "doctor": TypeAdapter(Doctor),
    "evaluate": TypeAdapter(Evaluated),
    "mine": TypeAdapter(Mining),
}
"""The types of the results that commands write with `--json`."""
DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
TEMPLATE = Path(__file__).with_name("configuration.md.j2")


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration."""
    return {**DRAFT, **_plain(SystemConfig.model_json_schema())}


class _Written(GenerateJsonSchema):
    """Generates schemas that require values with a default, because commands write all values."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return True


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of the results of `--json`, with a property for each command."""
    forms: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]]
    forms = [(name, "serialization", form) for name, form in FORMS.items()]
    found, whole = TypeAdapter.json_schemas(forms, schema_generator=_Written)
    properties = {name: of for (name, _), of in found.items()}
    return {**DRAFT, **_plain({"properties": properties, **whole})}


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _plain(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and isinstance(value, dict) and value)
    }
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return kept


def page() -> str:
    """Return the text of `docs/configuration.md`."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    whole = schema()
    return template.render(sections=_sections("", whole, whole["$defs"]))


def _sections(
    name: str, section: dict[str, Any], defs: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    keys, inner = {}, {}
    for key, field in section["properties"].items():
        options = (field, *field.get("anyOf", []))
        items = [option["items"] for option in options if "items" in option]
        kinds = [of["$ref"] for item in items for of in item.get("oneOf", ())]
        for kind in (defs[of.rpartition("/")[2]] for of in kinds):  # a list of several kinds
            own = {n: of for n, of in kind["properties"].items() if n != "kind"}
            about = f"{field['description']} {kind['description']}"
            name_of_kind = f"{key}[{kind['properties']['kind']['const']}]"
            inner[f"{name}.{name_of_kind}".lstrip(".")] = {"description": about, "properties": own}
        if kinds:
            continue
        if reference := max(option.get("$ref", "") for option in (*options, *items)):
            inner[f"{name}.{key}".lstrip(".")] = defs[reference.rpartition("/")[2]]
        else:
            keys[f"{name}.{key}".lstrip(".")] = field
    yield name, section["description"], keys
    for key, found in inner.items():
        yield from _sections(key, found, defs)


_MARKED = re.compile(r"(<!-- (\w+): [^\n]* -->\n).*?(<!-- end -->)", re.S)


def filled(page: str) -> str:
    """Return the text of a page with updated tables."""
    return _MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", page)


def table(rows: Iterable[Sequence[object]], *columns: object) -> Markdown:
    """Return a Markdown table. Whole numbers have thousands separators."""

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
    needs = [code(name) for name in scorer.reads if name not in ("reference", "translation")]
    if scorer.resource:
        needs.append(Markdown(re.sub(r"score\.\w+", r"`\g<0>`", scorer.resource.remedy)))
    return Markdown("; ".join(needs))


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
    every = Markdown("a column for each score ([scorers.md](scorers.md))")
    rows: dict[str, tuple[str, ...]] = {}
    scores, several = "<score>", {"candidates": True, "generators": True}
    by_stage = {  # every column that a run may have
        "ingest": pair_schema.INGEST,
        "back_translate": pair_schema.translated(candidates=True),
        "generate": pair_schema.translated(**several),
        "score": pair_schema.scored((scores,), **several),
        "bucket": pair_schema.bucketed((scores,), **several),
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
    found = next((entry for entry in entries if entry.name == listed.name), None)
    words = _required(found.load().params) if found else ["COMMAND"]
    return code(" ".join([start, listed.name, *words])), listed.short_help or listed.help


def _required(parameters: Sequence[Any]) -> Iterator[str]:
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
"""The function that generates each table, by name of the table."""


if __name__ == "__main__":
    for path, made in ((SCHEMA, schema()), (RESULTS, results_schema())):
        path.write_text(json.dumps(made, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
