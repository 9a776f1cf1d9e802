"""Tables 5, 6 and 8 of W&G (Wieting & Gimpel 2017): training on labelled pairs by the KL loss.

To save time, each training has only 3 epochs, and a learning rate of 0.01. This rate was chosen
among 0.001, 0.003 and 0.01 on the pairs that select the epoch.

With SICK, the trial pairs select the epoch and the test pairs are reported, as in the paper. If the
test pairs are missing, a tenth of the training pairs selects the epoch and the trial pairs are
reported.

"Universal" encoders are the encoders of the tables of transfer (Tables 2 and 3 of the paper). λ_c
and λ_w pull weights towards the universal encoder.
"""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.experiments.cells import Inputs, keyed_path, shards_in
from benchmarks.experiments.labelled import LabelledCell
from benchmarks.experiments.revisiting import BOTH, as_printed, options_of, regularised
from benchmarks.experiments.tables import Figures, Table, read_figures
from paraloom.papers.options import SimilarityOptions, SystemOptions
from paraloom.papers.tasks import train

_LAMBDA = 1e-5  # λ_c and λ_w, towards the universal encoder
_WG5, _WG6, _WG8 = map(read_figures, ("wg5", "wg6", "wg8"))
_NOTE = (
    "3 epochs with a rate of 0.01, batches of 25, 300 units, 20,000 words. Universal encoders have "
    "seed 1 only."
)
_UNIVERSAL = {"AVG": "", "LSTM Avg": BOTH, "GRAN": BOTH}
"""The regulariser that each universal encoder is trained with (4.3)."""


def prepare(chosen: Mapping[str, Table], inputs: Inputs) -> None:
    """Train the universal encoders that the chosen tables need, if they do not exist."""
    cells = (cell for table in chosen.values() for cell in table.rows.values())
    sections = (cell.options.similarity for cell in cells if isinstance(cell, LabelledCell))
    starts = {section.start for section in sections if section is not None}
    for name in _UNIVERSAL:
        if str(_universal(name, inputs)[1]) in starts:
            universal(name, inputs)


def universal(name: str, inputs: Inputs) -> Path:
    """Return the folder of an encoder of `_UNIVERSAL`, after training it if it does not exist."""
    options, folder = _universal(name, inputs)
    if not folder.exists():
        train(options, folder, shards=shards_in(inputs.corpus), seed=1, threads=1)
    return folder


def _universal(name: str, inputs: Inputs) -> tuple[SystemOptions, Path]:
    """Return the options and the folder of an encoder. The folder depends on the options."""
    options = regularised(_encoder(name, inputs), _UNIVERSAL[name])
    return options, inputs.folder / "universal" / keyed_path(options.chosen(), inputs).stem


def _encoder(name: str, inputs: Inputs) -> SystemOptions:
    return options_of(name, inputs.vectors).replace(max_vocabulary=20_000)


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return the tables by name: for each table of the paper, a table for SICK and one for STS."""
    found = {}
    for data, paths in (("sick", [str(inputs.sick)]), ("sts", inputs.development)):
        cells = _cells(data, paths, inputs)
        found[f"wg5-{data}"] = _wg5(data, cells, inputs)
        found[f"wg6-{data}"] = _wg6(data, cells, inputs)
        found[f"wg8-{data}"] = _wg8(data, cells, inputs)
    return found


def _has_test_set(inputs: Inputs) -> bool:
    return (inputs.sick / "SICK_test_annotated.txt").exists()


def _cells(data: str, paths: list[str], inputs: Inputs) -> dict[str, LabelledCell]:
    """Return the cells of all tables, by the names of Tables 5 and 8."""
    held_out = None if data == "sick" and _has_test_set(inputs) else 0.1
    variants = [f"GRAN-{number}, {BOTH}" for number in (2, 3, 4, 5)]
    cells = {}
    for row in dict.fromkeys([*_WG5, *_WG8, *variants]):
        name, _, regulariser = row.removesuffix(", universal").partition(", ")
        section = SimilarityOptions(data=paths, held_out=held_out)
        options = regularised(_encoder(name, inputs), regulariser).replace(
            task="similarity", similarity=section, epochs=3, learning_rate=0.01, batch_size=25
        )
        if row.endswith(", universal"):
            start = section.replace(start=str(_universal(name, inputs)[1]))
            options = options.replace(
                similarity=start, initial_vectors=None, lambda_c=_LAMBDA, lambda_w=_LAMBDA
            )
        cells[row] = LabelledCell(options=options)
    return cells


def _wg5(data: str, cells: dict[str, LabelledCell], inputs: Inputs) -> Table:
    models = ("AVG", "LSTM", "LSTM Avg", "GRAN")
    pairs = [(row, row.split(",")[0]) for row in _WG5 if "," in row]
    pairs += [("LSTM Avg", "LSTM"), ("GRAN", "AVG"), ("GRAN", "LSTM Avg")]
    for regulariser in ("scrambling", BOTH):
        pairs += [
            (f"{one}, {regulariser}", f"{other}, {regulariser}")
            for one, other in zip(models[2:], models[1:], strict=False)
        ]
    pairs += [(f"LSTM Avg, {BOTH}", "AVG, dropout"), (f"GRAN, {BOTH}", "AVG, dropout")]
    pairs += [(f"LSTM Avg, {BOTH}", "LSTM")]
    pairs += [("GRAN, scrambling", "AVG")] if data == "sick" else []  # best GRAN, best AVG
    stated = [pair for row in _WG5 for pair in ((row, "LSTM"), ("LSTM", row))]
    stated += [pair for pair in pairs if "GRAN" in pair[0] and "GRAN" not in pair[1]]
    stated += [("AVG, dropout", "AVG")] if data == "sts" else []
    rows = {row: cells[row] for row in _WG5}
    return _table(f"W&G Table 5, {data.upper()}", data, rows, _WG5, (pairs, stated), inputs)


def _wg6(data: str, cells: dict[str, LabelledCell], inputs: Inputs) -> Table:
    rows = {name: cells[f"{name}, {BOTH}"] for name in _WG6}
    pairs = [("GRAN", name) for name in _WG6 if name != "GRAN"]
    title = f"W&G Table 6, {data.upper()}: all with dropout and scrambling"
    return _table(title, data, rows, _WG6, (pairs, pairs), inputs)


def _wg8(data: str, cells: dict[str, LabelledCell], inputs: Inputs) -> Table:
    stated = [(f"{row}, universal", row) for row in _WG8 if not row.endswith("universal")]
    average, lstm, gran = (better for better, _ in stated)  # Table 5 compares the other rows
    pairs = [*stated, (lstm, average), (gran, lstm), (gran, average)]
    title = f"W&G Table 8, {data.upper()}: from a trained encoder or from scratch"
    rows = {row: cells[row] for row in _WG8}
    return _table(title, data, rows, _WG8, (pairs, stated), inputs)


def _table(
    title: str,
    data: str,
    rows: dict[str, LabelledCell],
    figures: Figures,
    compared: tuple[list[tuple[str, str]], list[tuple[str, str]]],
    inputs: Inputs,
) -> Table:
    sick = data == "sick"
    paper = {row: {"pearson": found[data]} for row, found in figures.items()}
    measures = {"development": "10%", "pearson": "other 50%", "sts_2015": "STS 2015"}
    if sick:
        heads = ("SICK trial", "SICK test") if _has_test_set(inputs) else ("held out", "SICK trial")
        measures = {"development": heads[0], "pearson": heads[1], "mse": f"{heads[1]} MSE"}
    pairs, stated = compared
    note = _NOTE if title == "W&G Table 5, STS" else "Settings as in Table 5, STS."
    claims = as_printed(pairs, paper, "pearson", stated)
    return Table(title, rows, claims, measures, paper=paper, note=note)
