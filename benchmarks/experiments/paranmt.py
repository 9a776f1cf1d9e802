"""Small versions of the tables of ParaNMT-50M (Wieting & Gimpel 2017, version 1).

Each training has one epoch, except in the table `readings`. Only the best tenth in Table 4 and the
epoch in `readings` are chosen by results, on STS 2012 to 2014. The paper's figures of Tables 3 to 5
are for STS 2017.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from benchmarks.experiments.cells import Inputs, digest, read_pairs, write_pairs
from benchmarks.experiments.paranmt_cells import (
    DifferenceCell,
    EncoderCell,
    FilterCell,
    OtherCell,
    TransferCell,
    scored_pairs,
)
from benchmarks.experiments.report import markdown, write_lines
from benchmarks.experiments.tables import (
    MEASURES,
    Claim,
    Figures,
    Table,
    printed_claims,
    read_figures,
)
from paraloom.models.embeddings.model import load_encoder
from paraloom.models.embeddings.options import EmbeddingOptions, PairsOptions
from paraloom.models.embeddings.training.negatives import hardest_negatives
from paraloom.models.embeddings.training.pair_files import copy_pairs
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes
from paraloom.papers.datasets.transfer import find_tasks

_YEARS = {f"sts_{year}": f"STS {year}" for year in range(2012, 2017)}
_PAPER = {"sts_2017": "paper: STS 2017"}
_MODELS = {"Word": "word-avg", "Trigram": "trigram-avg", "LSTM Avg": "lstm-avg"}
LARGER = "LSTM Avg, 600"
ROWS = tuple(read_figures("paranmt7"))
"""Rows of Tables 7, 8 and 9."""
MIXED = tuple(row for row in ROWS if row.startswith("Trigram-"))
_OVER_SINGLE = [(mix, single) for mix in MIXED for single in (*_MODELS, LARGER)]
_PAIRS = [(LARGER, "LSTM Avg"), *_OVER_SINGLE]
"""Pairs of rows that the paper compares (6.5.1, 6.6)."""
_SIZES = (1, 20, 40)
_NOTE = "27,359 pairs of captions, 1 epoch, batches of 100, 300 units."
_AS_BEFORE = "Settings as in Table 5, with M = 20."
_SAMPLE = 100_000  # maximum number of pairs of each source in Table 3
_SHOWN = 3  # sentences in Table 6
_TWO, _THREE = "trigram-avg+word-avg", "trigram-avg+word-avg+lstm-avg"
_ENCODERS: dict[str, dict[str, Any]] = {
    **{name: {"model": model} for name, model in _MODELS.items()},
    LARGER: {"model": "lstm-avg", "hidden": 600},
    "Trigram-Word, added": {"model": _TWO, "mix": "add"},
    "Trigram-Word-LSTM, added": {"model": _THREE, "mix": "add"},
    "Trigram-Word, concatenated": {"model": _TWO},
    "Trigram-Word-LSTM, concatenated": {"model": _THREE},
    "Trigram over sentences": {"model": "sentence-trigram-avg"},
    "Trigram over sentences-Word, concatenated": {"model": "sentence-trigram-avg+word-avg"},
    "Word-LSTM, concatenated": {"model": "word-avg+lstm-avg"},
    "Trigram-LSTM, concatenated": {"model": "trigram-avg+lstm-avg"},
}
"""The encoders of Table 7. The last four encoders are ours."""


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return all tables by name. Table 11 needs `inputs.others`."""
    encoders = _encoders(inputs)
    of_paper = {name: encoders[name] for name in ROWS}
    others = {name: OtherCell(folder=str(folder)) for name, folder in inputs.others.items()}
    found = {
        "paranmt3": _sources(inputs),
        "paranmt4": _filters(inputs),
        "paranmt5": _mega_batches(inputs),
        "paranmt7": _by_year(encoders),
        "readings": _readings(inputs),
        "paranmt8": _transfer(of_paper),
        "paranmt9": _benchmark(of_paper),
        "paranmt10": _differences(encoders),
        "paranmt12": _captions(encoders, others),
    }
    return {**found, "paranmt11": _leads(encoders, others)} if others else found


def _marked(rows: Mapping[str, Any], figures: Figures) -> dict[str, Any]:
    """Add "(ours)" to the names of rows that the paper does not have."""
    return {name if name in figures else f"{name} (ours)": cell for name, cell in rows.items()}


def _words(inputs: Inputs) -> EmbeddingOptions:
    return EmbeddingOptions(
        initial_vectors=str(inputs.vectors),
        epochs=1,
        mega_batch=20,
        negatives="both",
        scramble=0.3,
    )


def _encoders(inputs: Inputs) -> dict[str, EncoderCell]:
    words = _words(inputs)
    return {name: EncoderCell(options=words.replace(**of)) for name, of in _ENCODERS.items()}


def prepare(chosen: Mapping[str, Table], inputs: Inputs) -> None:
    """Write equally many pairs of each source for Table 3, and check the pairs of Table 4.

    Without `inputs.sources`, the sources are the corpus and the paraphrases of MRPC, which are
    news.

    Raises:
        UserError: a source is unreadable, or the pairs with deciles for Table 4 are missing.
    """
    if "paranmt4" in chosen and not scored_pairs(inputs).exists():
        raise UserError(
            f"{scored_pairs(inputs)}: table paranmt4 needs the run's pairs with deciles; name a "
            "corpus that is in the folder of its run, or leave out paranmt4"
        )
    if "paranmt3" not in chosen:
        return
    found = {}
    for name, file in inputs.sources.items():
        folder = inputs.folder / "sources" / f".{digest(file)[:24]}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        (copy,) = copy_pairs([PairsOptions(paths=[str(file)])], folder)
        found[name] = pq.read_table(copy).rename_columns(["reference", "translation"])
    found = found or {"captions": read_pairs(inputs.corpus), "news": _mrpc(inputs)}
    size = min(_SAMPLE, *map(len, found.values()))
    for name, table in found.items():
        rows = np.sort(np.random.default_rng(1).permutation(len(table))[:size])
        write_pairs(inputs.folder / "sources" / name, table.take(rows))


def _mrpc(inputs: Inputs) -> pa.Table:
    """Return the paraphrases in the training pairs of MRPC."""
    tasks, _ = find_tasks(inputs.sts.parent / "mrpc")
    (pairs,) = (task.train for task in tasks if task.name == "MRPC")
    table = pa.table({"reference": pairs.first, "translation": pairs.second})
    return table.filter(pa.array(pairs.labels == "1"))


def _sources(inputs: Inputs) -> Table:
    paper = read_figures("paranmt3")
    names = list(inputs.sources) or ["captions", "news"]
    rows = {
        f"{source}, {name}": EncoderCell(options=options, pairs=f"sources/{source}")
        for source in names
        for name, model in _MODELS.items()
        for options in [_words(inputs).replace(model=model)]
    }
    claims = [
        Claim(f"CzEng, {name}", f"{source}, {name}")
        for name in _MODELS
        for source in names
        if "CzEng" in names and source != "CzEng" and f"{source}, {name}" in paper
    ]
    return Table(
        "ParaNMT Table 3: sources of pairs, equally many of each",
        _marked(rows, paper),
        claims,
        note="1 epoch, batches of 100, 300 units, M = 20. Each source has as many pairs as the "
        "smallest source.",
        paper=paper,
        paper_measures=_PAPER,
    )


def _filters(inputs: Inputs) -> Table:
    paper = read_figures("paranmt4")
    options = _words(inputs).replace(model="lstm-avg")
    rows = {score: FilterCell(options=options, score=score) for score in paper}
    claims = [Claim("paragram_similarity", score) for score in list(rows)[1:]]
    return Table(
        "ParaNMT Table 4: the best tenth of the pairs by each score, LSTM Avg",
        rows,
        claims,
        measures={**MEASURES, "development_decile": "best tenth, from 0"},
        note="Tenths of 29,000 pairs, 1 epoch, batches of 100, 300 units, M = 20.",
        paper=paper,
        paper_measures=_PAPER,
    )


def _mega_batches(inputs: Inputs) -> Table:
    paper = read_figures("paranmt5")
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
        note=f"{_NOTE} With M = 40, negatives are chosen among 4,000 of the 27,359 pairs.",
        paper=paper,
        paper_measures=_PAPER,
    )


def _of_size(M: int, model: str, inputs: Inputs) -> EncoderCell:
    return EncoderCell(options=_words(inputs).replace(model=model, mega_batch=M, combine="mean"))


def _by_year(encoders: Mapping[str, EncoderCell]) -> Table:
    paper = read_figures("paranmt7")
    word_and_trigram = [name for name in MIXED if "LSTM" not in name]
    pairs = [(name, name.replace("Word", "Word-LSTM")) for name in word_and_trigram]
    return Table(
        "ParaNMT Table 7: single, larger and mixed encoders",
        _marked(encoders, paper),
        printed_claims([*_PAIRS, *pairs], paper, [*_OVER_SINGLE, *pairs]),
        measures={**_YEARS, "sick": "SICK trial"},
        paper=paper,
        note=f"{_AS_BEFORE} The paper's means include MSRvid (2012) and SMT (2013), and ours do "
        "not. The paper has no figures by data set, so levels cannot be compared. SICK, trigrams "
        "over sentences, and mixtures of two encoders with an LSTM are ours.",
    )


def _readings(inputs: Inputs) -> Table:
    """Compare readings of the paper, with the settings of configs/multi30k.yaml."""
    words = EmbeddingOptions(
        initial_vectors=str(inputs.vectors),
        negatives="both",
        dropout=0.3,
        development=inputs.development,
    )
    trigrams = words.replace(model="trigram-avg", initial_vectors=None)
    rows = {
        "Trigram within words, both sides": trigrams,
        "Trigram over sentences, both sides": trigrams.replace(model="sentence-trigram-avg"),
        "Trigram within words, same side": trigrams.replace(negatives="same"),
        "Word, both sides": words,
        "Word, same side": words.replace(negatives="same"),
    }
    return Table(
        "ParaNMT, readings of the authors' code: trigrams (4.1) and negatives (W&G 3.2.1)",
        {f"{name} (ours)": EncoderCell(options=options) for name, options in rows.items()},
        note="The authors' code has trigrams of the whole sentence, including spaces, and "
        "negatives of both sides. The settings are those of `configs/multi30k.yaml`: 27,359 pairs "
        "of captions, 5 epochs, batches of 100, M = 40, dropout 0.3. Word starts from PARAGRAM "
        "vectors, and Trigram from random vectors.",
    )


def _transfer(encoders: Mapping[str, EncoderCell]) -> Table:
    paper = read_figures("paranmt8")
    heads = {"MRPC f1": "MRPC-F1", "SICK-R pearson": "SICK-R"}
    equal = ("Trigram-Word, concatenated", LARGER)  # 600 dimensions each
    wider = [pair for pair in _PAIRS if "added" not in pair[0] and pair != equal]
    return Table(
        "ParaNMT Table 8: transfer, on the parts at hand (SICK trial; dev sets; 10-fold)",
        {name: TransferCell(encoder=cell) for name, cell in encoders.items()},
        printed_claims(_PAIRS, paper, wider),
        measures={key: heads.get(key, key.removesuffix(" accuracy")) for key in paper["Word"]},
        unit="Accuracy and F1 in %; SICK-R: Pearson × 100",
        note=_AS_BEFORE,
        paper=paper,
    )


def _benchmark(encoders: Mapping[str, EncoderCell]) -> Table:
    paper = read_figures("paranmt9")
    return Table(
        "ParaNMT Table 9: STS Benchmark (test if it is there, else development)",
        encoders,
        printed_claims(_PAIRS, paper, _OVER_SINGLE),
        measures={"stsb": "STS Benchmark"},
        note=_AS_BEFORE,
        paper=paper,
    )


def _differences(encoders: Mapping[str, EncoderCell]) -> Table:
    paper = read_figures("paranmt10")
    rows = {
        row: DifferenceCell(first=encoders[first], second=encoders[second])
        for row in paper
        for first, second in [row.split(" / ")]
    }
    first, least, last = rows
    pairs = [(last, first), (first, least), (last, least)]
    return Table(
        "ParaNMT Table 10: mean absolute difference of two encoders over the STS data sets",
        rows,
        printed_claims(pairs, paper, pairs[1:]),
        measures={"absolute": "difference"},
        note="Over the available data sets: 18 here, 25 in the paper.",
        paper=paper,
    )


def _leads(encoders: Mapping[str, EncoderCell], others: Mapping[str, OtherCell]) -> Table:
    paper = read_figures("paranmt11")
    first = encoders["Trigram-Word, concatenated"]
    rows = {
        f"Trigram-Word over {name}": DifferenceCell(first=first, second=other)
        for name, other in others.items()
    }
    measures = {"mean": "mean of all", "msrvid": "MSRvid (2012)"}
    measures |= {f"images_{year}": f"Images ({year})" for year in (2014, 2015)}
    return Table(
        "ParaNMT Table 11: the lead of Trigram-Word over another model, on captions and on average",
        _marked(rows, paper),
        measures=measures,
        paper=paper,
    )


def _captions(encoders: Mapping[str, EncoderCell], others: Mapping[str, OtherCell]) -> Table:
    paper = read_figures("paranmt12")
    name = "Trigram-Word, concatenated"
    return Table(
        "ParaNMT Table 12: STS Benchmark by genre, by the cosine",
        _marked({**others, name: encoders[name]}, paper),
        measures={"stsb": "all", "captions": "captions", "others": "no captions"},
        paper=paper,
    )


def print_negatives(inputs: Inputs) -> None:
    """Print Table 6: negatives of three sentences, chosen by a BiLSTM Avg encoder for each M."""
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
