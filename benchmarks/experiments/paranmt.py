"""Small versions of the tables of ParaNMT-50M (Wieting & Gimpel 2017, version 1).

The settings follow section 6.2. Word vectors start from PARAGRAM, and mini-batches have 100 pairs.
Recurrent encoders read 30% of the pairs scrambled, and negatives come from both sides of a
mega-batch (footnote 8). A bidirectional encoder averages the states of its directions (4.1). Each
training has one epoch. Nothing is chosen by these figures. The paper's figures of Tables 4 and 5
are for STS 2017.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from benchmarks.experiments.cells import Inputs, read_pairs
from benchmarks.experiments.paranmt_cells import (
    DifferenceCell,
    EncoderCell,
    FilterCell,
    TransferCell,
    scored_pairs,
)
from benchmarks.experiments.report import markdown, write_lines
from benchmarks.experiments.tables import MEASURES, Claim, Table, printed_claims
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions
from paraloom.models.embeddings.training.negatives import hardest_negatives
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes

Paper = Mapping[str, Mapping[str, float]]

SIMPLE = ("Word", "Trigram", "LSTM Avg")
LARGER = "LSTM Avg, 600"
MIXED = (
    "Trigram-Word, added",
    "Trigram-Word-LSTM, added",
    "Trigram-Word, concatenated",
    "Trigram-Word-LSTM, concatenated",
)
_SCORES = ("paragram_similarity", "trigram_overlap", "translation_score")
ROWS = (*SIMPLE, LARGER, *MIXED)
"""Rows of Tables 7, 8 and 9. LSTMs of 900 units and BiLSTMs are left out, because they take
hours."""


def _table(measures: str, *rows: str) -> Paper:
    names = measures.split()
    figures = [list(map(float, row.split())) for row in rows]
    return {
        name: dict(zip(names, of_row, strict=True))
        for name, of_row in zip(ROWS, figures, strict=True)
    }


TABLE_4: Paper = {
    score: {"sts_2017": figure} for score, figure in zip(_SCORES, (83.8, 83.4, 83.4), strict=True)
}
TABLE_5: Paper = {
    f"{model}, M = {M}": {"sts_2017": figure}
    for model, figures in {"Word": (82.3, 84.0, 84.1), "BiLSTM Avg": (82.4, 85.0, 85.1)}.items()
    for M, figure in zip((1, 20, 40), figures, strict=True)
}
TABLE_7 = _table(
    "sts_2012 sts_2013 sts_2014 sts_2015 sts_2016",
    "66.2 61.8 76.2 79.3 77.5",
    "67.2 60.3 76.1 79.7 78.3",
    "67.0 62.3 76.3 78.5 76.0",
    "66.6 61.3 76.0 78.8 74.8",
    "67.3 62.8 77.5 80.1 78.2",
    "67.1 62.8 76.8 79.2 77.0",
    "67.8 62.7 77.4 80.3 78.1",
    "67.7 62.8 76.9 79.8 76.8",
)
TABLE_8 = _table(
    "MR CR SUBJ MPQA SST TREC MRPC MRPC-F1 SICK-R SICK-E",
    "75.8 80.5 89.2 87.1 80.0 80.1 68.6 80.9 83.6 80.6",
    "68.8 75.5 83.6 82.3 73.6 73.0 71.4 82.0 79.3 78.0",
    "73.8 78.4 88.5 86.5 80.6 76.8 73.6 82.3 83.9 81.9",
    "75.2 80.5 90.0 88.0 80.0 83.8 74.0 82.1 85.2 82.6",
    "74.8 78.8 88.5 87.4 78.7 79.0 71.4 81.4 83.2 80.6",
    "75.0 80.7 88.6 86.6 77.9 78.6 72.7 80.8 83.6 81.8",
    "75.8 80.5 89.9 87.8 79.7 82.4 70.7 81.7 84.6 82.0",
    "77.6 81.4 91.4 88.2 82.0 85.4 74.0 81.5 85.4 83.8",
)
TABLE_9 = _table("stsb", "79.2", "79.1", "78.4", "78.8", "79.9", "79.6", "79.9", "79.2")
TABLE_10: Paper = {
    "Word / Trigram": {"absolute": 2.75},
    "Word / LSTM Avg": {"absolute": 2.17},
    "Trigram / LSTM Avg": {"absolute": 2.89},
}

_YEARS = {f"sts_{year}": f"STS {year}" for year in range(2012, 2017)}
_PAPER = {"sts_2017": "paper: STS 2017"}
_MODELS = {"Word": "word-avg", "Trigram": "trigram-avg", "LSTM Avg": "lstm-avg"}
_LARGER = (LARGER, "LSTM Avg")
_OVER_SINGLE = [(mix, single) for mix in MIXED for single in (*SIMPLE, LARGER)]
_PAIRS = [_LARGER, *_OVER_SINGLE]
"""Rows that the paper compares (6.5.1, 6.6)."""
_SIZES = (1, 20, 40)
_NOTE = "27,359 pairs of captions, 1 epoch, batches of 100, 300 units."
_AS_BEFORE = "Settings as in Table 5, with M = 20."
_SHOWN = 3  # sentences in Table 6


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return all tables by name."""
    encoders = _encoders(inputs)
    return {
        "paranmt4": _filters(inputs),
        "paranmt5": _mega_batches(inputs),
        "paranmt7": _by_year(encoders),
        "paranmt8": _transfer(encoders),
        "paranmt9": _benchmark(encoders),
        "paranmt10": _differences(encoders),
    }


def _words(inputs: Inputs) -> EmbeddingOptions:
    return EmbeddingOptions(
        initial_vectors=str(inputs.vectors),
        epochs=1,
        mega_batch=20,
        negatives="both",
        scramble=0.3,
    )


def _encoders(inputs: Inputs) -> dict[str, EncoderCell]:
    """Return the encoders of Tables 7, 8 and 9."""
    words = _words(inputs)
    mixed = {"Trigram-Word": "trigram-avg+word-avg"}
    mixed["Trigram-Word-LSTM"] = f"{mixed['Trigram-Word']}+lstm-avg"
    settings = {name: words.replace(model=model) for name, model in _MODELS.items()}
    settings[LARGER] = words.replace(model="lstm-avg", hidden=600)
    for how, options in {"added": words.replace(mix="add"), "concatenated": words}.items():
        settings |= {f"{name}, {how}": options.replace(model=of) for name, of in mixed.items()}
    return {name: EncoderCell(options=options) for name, options in settings.items()}


def prepare(chosen: Mapping[str, Table], inputs: Inputs) -> None:
    """Check that the pairs with deciles exist, if Table 4 is chosen."""
    if "paranmt4" in chosen and not scored_pairs(inputs).exists():
        raise UserError(
            f"{scored_pairs(inputs)}: paranmt4 needs the run's pairs with deciles; name a corpus "
            "in its run's folder, or other tables"
        )


def _filters(inputs: Inputs) -> Table:
    options = _words(inputs).replace(model="lstm-avg")
    rows = {score: FilterCell(options=options, score=score) for score in TABLE_4}
    claims = [Claim("paragram_similarity", score) for score in list(rows)[1:]]
    return Table(
        "ParaNMT Table 4: the best tenth of the pairs by each score, LSTM Avg",
        rows,
        claims,
        measures={**MEASURES, "development_decile": "best tenth, from 0"},
        note="Tenths of 29,000 pairs, 1 epoch, batches of 100, 300 units, M = 20.",
        paper=TABLE_4,
        paper_measures=_PAPER,
    )


def _mega_batches(inputs: Inputs) -> Table:
    models = {"Word": "word-avg", "BiLSTM Avg": "bilstm-avg"}
    rows = {
        f"{name}, M = {M}": _of_size(M, model, inputs)
        for name, model in models.items()
        for M in _SIZES
    }
    claims = [
        Claim(f"{name}, M = {more}", f"{name}, M = {fewer}")
        for name in models
        for more, fewer in ((20, 1), (40, 1), (40, 20))
    ]
    return Table(
        "ParaNMT Table 5: mega-batches",
        rows,
        claims,
        note=f"{_NOTE} With M = 40, negatives are chosen among 4,000 pairs of 27,359.",
        paper=TABLE_5,
        paper_measures=_PAPER,
    )


def _of_size(M: int, model: str, inputs: Inputs) -> EncoderCell:
    return EncoderCell(options=_words(inputs).replace(model=model, mega_batch=M, combine="mean"))


def _by_year(encoders: Mapping[str, EncoderCell]) -> Table:
    word_and_trigram = [name for name in MIXED if "LSTM" not in name]
    pairs = [(name, name.replace("Word", "Word-LSTM")) for name in word_and_trigram]
    return Table(
        "ParaNMT Table 7: single, larger and mixed encoders",
        encoders,
        printed_claims([*_PAIRS, *pairs], TABLE_7, [*_OVER_SINGLE, *pairs]),
        measures={**_YEARS, "sick": "SICK trial"},
        paper=TABLE_7,
        note=f"{_AS_BEFORE} The paper's means include MSRvid (2012) and SMT (2013), and ours do "
        "not. Levels cannot be compared, as the paper has no figures by data set. SICK is ours.",
    )


def _transfer(encoders: Mapping[str, EncoderCell]) -> Table:
    tasks = {task: f"{task} accuracy" for task in ("MR", "SST", "TREC", "MRPC", "SICK-E")}
    tasks |= {"MRPC-F1": "MRPC f1", "SICK-R": "SICK-R pearson"}
    figures = {
        row: {key: of_row[task] for task, key in tasks.items()} for row, of_row in TABLE_8.items()
    }
    equal = ("Trigram-Word, concatenated", LARGER)  # 600 dimensions each
    wider = [pair for pair in _PAIRS if "added" not in pair[0] and pair != equal]
    return Table(
        "ParaNMT Table 8: transfer, on the parts at hand (SICK trial; dev sets; 10-fold)",
        {name: TransferCell(encoder=cell) for name, cell in encoders.items()},
        printed_claims(_PAIRS, figures, wider),
        measures={key: task for task, key in tasks.items()},
        unit="Accuracy and F1 in %; SICK-R: Pearson × 100",
        note=_AS_BEFORE,
        paper=figures,
    )


def _benchmark(encoders: Mapping[str, EncoderCell]) -> Table:
    return Table(
        "ParaNMT Table 9: STS Benchmark (test if it is there, else development)",
        dict(encoders),
        printed_claims(_PAIRS, TABLE_9, _OVER_SINGLE),
        measures={"stsb": "STS Benchmark"},
        note=_AS_BEFORE,
        paper=TABLE_9,
    )


def _differences(encoders: Mapping[str, EncoderCell]) -> Table:
    rows = {
        row: DifferenceCell(first=encoders[first], second=encoders[second])
        for row in TABLE_10
        for first, second in [row.split(" / ")]
    }
    first, least, last = rows
    pairs = [(last, first), (first, least), (last, least)]
    return Table(
        "ParaNMT Table 10: mean absolute difference of two encoders over the STS data sets",
        rows,
        printed_claims(pairs, TABLE_10, pairs[1:]),
        measures={"absolute": "difference"},
        note="Over the data sets at hand: ours 18, the paper 25.",
        paper=TABLE_10,
    )


def print_negatives(inputs: Inputs) -> None:
    """Print Table 6: the negatives of three sentences, by BiLSTM Avg encoders trained with each
    M."""
    table = read_pairs(inputs.corpus)
    table = table.filter(pc.not_equal(table["reference"], table["translation"]))
    table = table.take(np.random.default_rng(1).permutation(len(table))[: max(_SIZES) * 100])
    lines = ["### ParaNMT Table 6: negatives by the size of mega-batches (BiLSTM Avg)", ""]
    rows: list[tuple[str, str, str]] = []
    for M in _SIZES:
        encoder = load_encoder(_of_size(M, "bilstm-avg", inputs).encoder(1, inputs))
        sides = [table[name].slice(0, 100 * M).combine_chunks() for name in table.column_names]
        vectors = [torch.from_numpy(encoder.embed(side)) for side in sides]
        keys = [text_hashes(side) for side in sides]
        nearest = hardest_negatives(vectors[0], vectors[1], keys[0], keys[1], "both")[0]
        texts = [text.replace("|", "\\|") for text in pa.concat_arrays(sides).to_pylist()]
        rows += [(f"{M}", texts[i], texts[int(nearest[i])]) for i in range(_SHOWN)]
    lines += markdown(["M", "sentence", "negative"], rows)
    write_lines(inputs.folder / "paranmt6.md", lines)
