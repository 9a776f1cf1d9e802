"""The commands that look into what runs have left: phrases, gates, errors, spaces."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.errors import UserError


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add them to `paraloom`'s."""
    _add_phrases(commands)
    gates = commands.add_parser(
        "gates",
        help="which words a GRAN's gates let through",
        description="Read sentences on standard input; print the mean L1 norm of the gate by part "
        "of speech, dependency label and both.",
    )
    gates.add_argument("--model", required=True, metavar="DIR")
    gates.add_argument(
        "--spacy",
        required=True,
        metavar="PIPELINE",
        help="name or folder of a spaCy pipeline that tags and parses",
    )
    gates.add_argument(
        "--least", type=int, default=10, metavar="N", help="words that a label needs; default 10"
    )
    gates.set_defaults(work=_gates)
    errors = commands.add_parser(
        "errors",
        help="pairs on which one of two models is far nearer to people",
        description="Print the labelled pairs on which two models err most differently.",
    )
    errors.add_argument("--model", required=True, action="append", metavar="DIR", help="twice")
    errors.add_argument("--count", type=int, default=10, metavar="N", help="pairs of each model")
    spaces = commands.add_parser(
        "spaces",
        help="what to take from an encoder with decoders, on STS",
        description="Compare the encoder's vector with the decoders' states, by dot product and "
        "cosine.",
    )
    spaces.add_argument("--model", required=True, metavar="DIR", help="of embeddings.task: context")
    spaces.add_argument("--steps", type=int, default=10, metavar="N", help="words to unroll for")
    for command, work in ((errors, _errors), (spaces, _spaces)):
        command.add_argument("--sts", metavar="DIR", help="<year>/<data set>.tsv")
        command.add_argument("--sick", metavar="DIR")
        command.set_defaults(work=work)
    for command in (gates, errors, spaces):
        command.add_argument("--json", metavar="FILE", help="write the figures here as well")


def _add_phrases(commands: argparse._SubParsersAction) -> None:
    phrases = commands.add_parser(
        "phrases",
        help="phrases that a run's pairs say the same with, as PPDB's text",
        description="Write the phrase table of a run's corpus.",
        epilog="What stands after -- goes to Beam. Workers on other machines: let TMPDIR name a "
        "folder that all of them see.",
    )
    phrases.add_argument("run", metavar="RUN", help="run folder")
    phrases.add_argument(
        "--min-count",
        type=int,
        default=2,
        metavar="N",
        help="in fewer places (of the whole corpus) a pair of phrases does not count; default 2",
    )
    phrases.add_argument("--out", metavar="FILE", help="default RUN/phrases.txt.gz")
    phrases.set_defaults(work=_phrases)
    choose = commands.add_parser(
        "evaluate-phrases",
        help="models on phrases: choose the paraphrase, SemEval-2013 5(a), Turney 2012",
    )
    choose.add_argument(
        "--model", required=True, action="append", metavar="DIR", help="may be given again"
    )
    choose.add_argument("--table", metavar="FILE", help="phrase table to choose paraphrases of")
    choose.add_argument(
        "--held-out",
        type=float,
        metavar="SHARE",
        help="only the pairs of which training with embeddings.phrases.held_out at this share "
        "did not see a phrase",
    )
    choose.add_argument("--semeval2013", metavar="DIR", help="en.trainSet.…Instances-v2 and so on")
    choose.add_argument("--turney2012", metavar="FILE", help="`stem | solution | …`, 7 choices")
    choose.add_argument("--json", metavar="FILE", help="write the figures here as well")
    choose.set_defaults(work=_evaluate_phrases)


def _phrases(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from pipeline.commands.analyses.extract_phrases import run

    if options.min_count < 1:
        raise UserError(f"--min-count {options.min_count}: must be at least 1")
    run(options.run, beam, min_count=options.min_count, out=options.out)


def _evaluate_phrases(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from rich.table import Table

    from models.embeddings.applications.phrase_tests import (
        evaluate_phrases,
        read_semeval2013,
        read_turney2012,
    )
    from models.embeddings.datasets.phrases import read_phrase_pairs, split
    from models.embeddings.model import load_encoder
    from pipeline.console import console

    pairs = read_phrase_pairs(options.table) if options.table else None
    semeval = read_semeval2013(options.semeval2013) if options.semeval2013 else None
    questions = read_turney2012(options.turney2012) if options.turney2012 else None
    if not (options.table or options.semeval2013 or options.turney2012):
        raise UserError("evaluate-phrases: give --table, --semeval2013 or --turney2012")
    if pairs is not None and options.held_out is not None:
        _, pairs = split(pairs, options.held_out)
    found = {
        folder: evaluate_phrases(
            load_encoder(folder).named(folder), pairs=pairs, semeval=semeval, questions=questions
        )
        for folder in options.model
    }
    table = Table("test", *found, caption="× 100")
    first, *_ = found.values()
    for test, measures in first.items():
        for measure in measures:
            cells = (f"{of[test][measure]:.1f}" for of in found.values())
            table.add_row(f"{test}: {measure}", *cells)
    console().print(table)
    write_json(options.json, found)


def _gates(options: argparse.Namespace, beam: Sequence[str]) -> None:
    import pyarrow as pa
    from rich.columns import Columns
    from rich.table import Table

    from models.embeddings.applications.embed import line_batches
    from models.embeddings.applications.gate_analysis import gate_norms
    from models.embeddings.model import load_encoder
    from models.text.parses import Parser
    from pipeline.console import console

    model, parser = load_encoder(options.model), Parser(options.spacy)
    batches = (pa.array(batch, pa.string()) for batch in line_batches(sys.stdin.buffer))
    found = gate_norms(model, parser, batches)._asdict()
    tables = []
    for kind, norms in found.items():
        table = Table(kind.replace("_", " "), "words", "mean norm")
        for label, of in norms.items():
            if of.count >= options.least:
                table.add_row(label, f"{of.count:,}", f"{of.mean:.2f}")
        tables.append(table)
    console().print(Columns(tables))
    write_json(
        options.json,
        {
            kind: {
                label: {"words": of.count, "mean": of.mean, "deviation": of.deviation}
                for label, of in norms.items()
            }
            for kind, norms in found.items()
        },
    )


def _errors(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from rich.table import Table

    from models.embeddings.applications.compare_models import disagreements
    from models.embeddings.model import load_encoder
    from pipeline.console import console

    if len(options.model) != 2:
        raise UserError("errors: give --model twice, once for each of the two")
    data = _labelled(options, "errors")
    first, second = (load_encoder(folder).named(folder) for folder in options.model)
    found = disagreements((first, second), data, count=options.count)
    for better, worse, pairs in ((second, first, found[0]), (first, second, found[1])):
        table = Table("data", "sentences", "label", *options.model)
        table.title = f"{better.name} is nearer to people than {worse.name}"
        for pair in pairs:
            said = (f"{score:.1f}" for score in pair.scores)
            texts = f"{pair.first}\n{pair.second}"
            table.add_row(pair.data, texts, f"{pair.label:.1f}", *said, end_section=True)
        console().print(table)
    write_json(
        options.json,
        {
            name: [pair._asdict() for pair in pairs]
            for name, pairs in zip(reversed(options.model), found, strict=True)
        },
    )


def _spaces(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from rich.table import Table

    from models.embeddings.applications.decoder_spaces import compare_spaces
    from models.embeddings.model import load_encoder
    from pipeline.console import console

    if options.steps < 1:
        raise UserError(f"--steps {options.steps}: must be at least 1")
    data = _labelled(options, "spaces")
    found = compare_spaces(load_encoder(options.model), data, steps=options.steps)
    groups = dict.fromkeys(pairs.group for pairs in data)
    table = Table("vector", *groups, caption="dot product / cosine: mean Pearson × 100")
    for space, of in found.items():
        table.add_row(str(space), *(" / ".join(f"{a[g]:.1f}" for a in of.values()) for g in groups))
    console().print(table)
    write_json(options.json, {str(space): of for space, of in found.items()})


def _labelled(options: argparse.Namespace, command: str) -> list[Any]:
    from models.embeddings.datasets.similarity import read_sick, read_sts

    if not (options.sts or options.sick):
        raise UserError(f"{command}: nothing to evaluate on; give --sts DIR, --sick DIR or both")
    return [
        *(read_sts(options.sts) if options.sts else []),
        *(read_sick(options.sick) if options.sick else []),
    ]


def write_json(file: str | None, found: Any) -> None:
    """Write the figures of a command to the file of its `--json`, if it has one."""
    from models.files import atomic_file

    if file:
        with atomic_file(Path(file)) as path:
            path.write_text(json.dumps(found, indent=1, ensure_ascii=False), encoding="utf-8")
