"""The command line: `paraloom COMMAND …`; see `paraloom --help`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from models.errors import UserError
from pipeline.analyses import add_commands, write_json

_STAGES = {
    "corpus": ("all stages", ("corpus", "statistics", "embeddings", "evaluate")),
    "ingest": ("bitext into pairs", ("ingest",)),
    "back-translate": ("up to the translations", ("back_translate",)),
    "score": ("up to the scores", ("score",)),
    "bucket": ("up to the deciles", ("bucket",)),
    "select": ("up to the corpus", ("corpus",)),
    "train-nmt": ("train the translation model", ("nmt",)),
    "train-paragram": ("train word vectors on phrase pairs", ("paragram",)),
    "train-embeddings": ("train an encoder on the corpus", ("embeddings", "evaluate")),
}

_READING = ("compare", "estimate", "explain", "status")  # Beam's options lead to object stores


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 if all is well, 2 with one line if something of the user's is wrong."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    beam = given[given.index("--") + 1 :] if "--" in given else []
    own = given[: given.index("--")] if "--" in given else given
    options = _parser().parse_args(own)
    # torch's threads sleep while they wait: on busy cores they would starve each other.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    logging.getLogger().setLevel(logging.ERROR)  # Beam warns of clouds that nobody asked for
    if beam and options.command not in (*_STAGES, *_READING, "statistics", "phrases"):
        print(f"paraloom: {options.command} takes no Beam options", file=sys.stderr)
        return 2
    try:
        if (file := getattr(options, "json", None)) and Path(file).is_dir():
            raise UserError(f"--json {file}: is a folder; name a file")
        work: Callable[[argparse.Namespace, Sequence[str]], int | None] = options.work
        return work(options, _place(options, beam)) or 0
    except UserError as error:
        print(f"paraloom: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("paraloom: interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="paraloom",
        description="Paraphrase corpora and paraphrastic sentence embeddings from bitext.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (text, _) in _STAGES.items():
        command = commands.add_parser(
            name,
            help=text,
            description=f"Run {text}; finished stages are kept.",
            epilog="What stands after -- goes to Beam, such as -- --direct_num_workers 2",
        )
        _add_config(command)
        command.add_argument("--force", action="store_true", help="run it though it is finished")
        _add_place(command)
        command.set_defaults(work=_run_stages)
    _add_models(commands)
    _add_statistics(commands)
    add_commands(commands)
    doctor = commands.add_parser("doctor", help="what is installed and which engines work")
    doctor.set_defaults(work=_doctor)
    explain = commands.add_parser("explain", help="one pair's whole way, and why it is in or out")
    explain.add_argument("run", metavar="RUN", help="run folder")
    explain.add_argument("id", metavar="ID", help="id of the pair")
    explain.set_defaults(work=_explain)
    status = commands.add_parser(
        "status",
        help="where a run stands, wherever it is computed",
        description="Print stages, shards, rates, rejects and time left, from the run folder.",
    )
    status.add_argument("run", metavar="RUN", help="run folder, local or on an object store")
    _add_gpu_hour(status)
    status.set_defaults(work=_status)
    estimate = commands.add_parser(
        "estimate",
        help="hours, money, disk and memory of a run, before it",
        description="Translate some 2,000 sentences of the input on this machine, time the other "
        "jobs on them, and print what the whole input takes.",
    )
    _add_config(estimate)
    _add_gpu_hour(estimate)
    estimate.set_defaults(work=_estimate)
    compare = commands.add_parser(
        "compare",
        help="whether two runs hold the same rows and values",
        description="Compare two runs stage by stage, however their rows are cut into files; "
        "0 if they are the same, 1 if they differ.",
        epilog="Rows of differing parts are sorted in files in TMPDIR.",
    )
    compare.add_argument("runs", nargs=2, metavar="RUN", help="run folder")
    compare.set_defaults(work=_compare)
    return parser


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", required=True, metavar="FILE", help="YAML, see configs/")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        dest="changes",
        metavar="KEY.SUB=VALUE",
        help="change one key of the configuration; may be given again",
    )


def _add_gpu_hour(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--gpu-hour",
        type=float,
        metavar="PRICE",
        help="what an hour of one translating machine costs: prints the cost of back-translation",
    )


def _add_place(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--on",
        choices=["flink"],
        help="run the jobs on the cluster that `make flink-up` started here",
    )


def _place(options: argparse.Namespace, beam: Sequence[str]) -> Sequence[str]:
    """Beam's options: what --on stands for, then what the user gave."""
    if getattr(options, "on", None) is None:
        return beam
    from beam_jobs.runners.flink.cluster import default_folder, read

    return [*read(default_folder()).arguments(beam), *beam]


def _add_models(commands: argparse._SubParsersAction) -> None:
    embed = commands.add_parser("embed", help="sentences on standard input to vectors (.npy)")
    embed.add_argument("--model", required=True, metavar="DIR")
    embed.set_defaults(work=_embed)
    similarity = commands.add_parser("similarity", help="pairs on standard input to scores")
    similarity.add_argument("--model", required=True, metavar="DIR")
    similarity.set_defaults(work=_similarity)
    neighbours = commands.add_parser("neighbours", help="sentences nearest to those on input")
    neighbours.add_argument("--model", required=True, metavar="DIR")
    neighbours.add_argument(
        "--in", required=True, dest="collection", metavar="FILE", help="one sentence a line (.gz)"
    )
    neighbours.add_argument("--count", type=int, default=5, help="neighbours of each")
    neighbours.set_defaults(work=_neighbours)
    plot = commands.add_parser("plot", help="sentences on standard input as a picture (.svg)")
    plot.add_argument("--model", required=True, metavar="DIR")
    plot.add_argument("--out", required=True, metavar="FILE")
    plot.add_argument(
        "--unit", type=int, metavar="N", help="along this unit, from 0; default: by two components"
    )
    plot.set_defaults(work=_plot)
    evaluate = commands.add_parser("evaluate", help="models on STS, SICK and transfer tasks")
    evaluate.add_argument(
        "--model", required=True, action="append", metavar="DIR", help="may be given again"
    )
    evaluate.add_argument("--sts", metavar="DIR", help="<year>/<data set>.tsv")
    evaluate.add_argument("--sick", metavar="DIR")
    evaluate.add_argument(
        "--transfer", metavar="DIR", help="MR, CR, SUBJ, MPQA, SST, TREC, MRPC, SICK below it"
    )
    evaluate.add_argument("--json", metavar="FILE", help="write the figures here as well")
    evaluate.set_defaults(work=_evaluate)


def _add_statistics(commands: argparse._SubParsersAction) -> None:
    statistics = commands.add_parser(
        "statistics",
        help="corpora side by side: length, IDF, entropies, scores",
        description="Print a table of the corpora's statistics.",
        epilog="What stands after -- goes to Beam. Workers on other machines: let TMPDIR name a "
        "folder that all of them see.",
    )
    statistics.add_argument(
        "corpora",
        nargs="+",
        metavar="CORPUS",
        help="run folder, Parquet file or folder of such files with reference and translation",
    )
    statistics.add_argument(
        "--spacy", metavar="PIPELINE", help="name or folder of a spaCy pipeline that parses"
    )
    statistics.add_argument(
        "--idf", metavar="FILE", help="IDF of words (`word idf`), such as a run's idf/idf.txt"
    )
    statistics.add_argument("--json", metavar="FILE", help="write the figures here as well")
    _add_place(statistics)
    statistics.set_defaults(work=_statistics)


def _run_stages(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from pipeline.config import read_config
    from pipeline.run import run_stages

    config = read_config(options.config, options.changes)
    run_stages(config, _STAGES[options.command][1], beam, force=options.force)


def _embed(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from models.embeddings.applications.embed import embed_lines
    from models.embeddings.model import load_encoder

    embed_lines(load_encoder(options.model).embed, sys.stdin.buffer, sys.stdout.buffer)


def _similarity(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from models.embeddings.applications.embed import similarity_lines
    from models.embeddings.model import load_encoder

    model = load_encoder(options.model)
    similarity_lines(model.embed, sys.stdin.buffer, sys.stdout.buffer, model.compare)


def _neighbours(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from models.embeddings.applications.neighbours import neighbour_lines
    from models.embeddings.model import load_encoder

    if options.count < 1:
        raise UserError("neighbours: --count must be at least 1")
    neighbour_lines(
        load_encoder(options.model).embed,
        sys.stdin.buffer,
        options.collection,
        sys.stdout.buffer,
        count=options.count,
    )


def _plot(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from models.embeddings.applications.embed import line_batches
    from models.embeddings.model import load_encoder
    from pipeline.commands.model.plot import plot

    lines = [line for batch in line_batches(sys.stdin.buffer) for line in batch]
    plot(load_encoder(options.model), lines, options.out, unit=options.unit)


def _evaluate(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from models.embeddings.applications.evaluation import evaluate_models
    from models.embeddings.applications.transfer import transfer
    from models.embeddings.model import load_encoder
    from pipeline.console import console

    if not (options.sts or options.sick or options.transfer):
        raise UserError(
            "evaluate: nothing to evaluate on; give --sts DIR, --sick DIR or --transfer DIR"
        )
    models = [load_encoder(model).named(model) for model in options.model]
    sts, sick = (Path(folder) if folder else None for folder in (options.sts, options.sick))
    report = evaluate_models(models, sts=sts, sick=sick)
    found = report.json()
    if sts or sick:
        console().print(report.table())
    if options.transfer:
        tried = transfer([(model.name, model.embed) for model in models], options.transfer)
        found["transfer"] = tried.json()
        console().print(tried.table())
    write_json(options.json, found)


def _statistics(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from beam_jobs.runners.launch import connect
    from pipeline.statistics import run

    connect(beam, options.corpora)
    found = run(options.corpora, beam, spacy=options.spacy, idf=options.idf)
    write_json(options.json, found)


def _doctor(options: argparse.Namespace, beam: Sequence[str]) -> int:
    from pipeline.commands.doctor import examine

    return 0 if examine() else 1


def _explain(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from beam_jobs.runners.launch import connect
    from pipeline.commands.run.explain import explain

    connect(beam, [options.run])
    explain(options.run, options.id)


def _status(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from beam_jobs.runners.launch import connect
    from pipeline.commands.run.status import show

    connect(beam, [options.run])
    show(options.run, options.gpu_hour)


def _estimate(options: argparse.Namespace, beam: Sequence[str]) -> None:
    from beam_jobs.runners.launch import connect
    from pipeline.commands.corpus.estimate import show
    from pipeline.config import read_config

    config = read_config(options.config, options.changes)
    connect(beam, [config.run])
    show(config, options.gpu_hour)


def _compare(options: argparse.Namespace, beam: Sequence[str]) -> int:
    from beam_jobs.runners.launch import connect
    from pipeline.commands.run.compare import run

    connect(beam, options.runs)
    return 0 if run(*options.runs) else 1


if __name__ == "__main__":
    sys.exit(main())
