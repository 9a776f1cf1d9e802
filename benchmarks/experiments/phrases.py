"""The tables of the pairwise GRU (Zhou, Huang & Ji 2017).

The phrase table is extracted from the corpus, and its pairs are split 80/10/10. The test is to find
the paraphrase of a phrase among 100 phrases. Size, dropout and step size of the GRU are the
paper's. The words have PARAGRAM vectors of 300 dimensions, which are not trained. The development
pairs select the epoch.
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.experiments.bootstrap import share
from benchmarks.experiments.cells import Inputs, Scores, TaskCell
from benchmarks.experiments.tables import MINUS, Claim, Table
from paraloom.beam_jobs import storage
from paraloom.beam_jobs.engine.shards import Shard, units
from paraloom.models.embeddings.comparison import ComparedModel, cosines
from paraloom.models.embeddings.model import SentenceEncoder
from paraloom.models.errors import UserError
from paraloom.models.text.vectors import load_vectors
from paraloom.papers.analyses import phrase_table
from paraloom.papers.options import PhrasesOptions, SystemOptions
from paraloom.papers.tasks.phrases import read_phrase_data

_NEGATIVES = (9, 29, 99)
_SHARES = {"1%": (0.01, 60), "10%": (0.1, 30), "100%": (1.0, 12)}  # and epochs


class PhraseCell(TaskCell):
    """A model trained on phrases. The phrase table must be large enough to choose among 100."""

    def _measured(
        self, model: SentenceEncoder, metrics: dict[str, Any], inputs: Inputs
    ) -> tuple[Scores, dict[str, Any]]:
        section, file = self.options.phrases, self.options.vector_file
        assert section is not None
        data = read_phrase_data(section, load_vectors(Path(file)).words if file else None)
        scores: Scores = {}
        compared = {"": model.named("model")}
        if not metrics["steps"]:  # the paper does not say how averages are compared
            compared["cosine "] = ComparedModel("cosine", model.embed, cosines)
        for prefix, each in compared.items():
            chosen = data.chosen(each)
            if chosen is None or data.development is None:
                raise UserError(f"{_table(inputs)}: too few phrases to choose among 100")
            scores[f"{prefix}development"] = data.development(each)
            scores[f"{prefix}chosen"] = share(chosen, "phrases")
        return scores, {}


def prepare(chosen: Mapping[str, Table], inputs: Inputs) -> None:
    """Extract the phrase table of the corpus once, if a chosen table needs it."""
    if "pgru" not in chosen or _table(inputs).exists():
        return
    shards = [
        Shard(str(path), pq.read_metadata(path).num_rows, storage.digest(path.read_bytes()))
        for path in sorted(inputs.corpus.glob("*.parquet"))
    ]
    phrase_table.count_phrases(units(shards, "phrases"), str(_table(inputs)), [])


def _table(inputs: Inputs) -> Path:
    return inputs.folder / "phrases.txt.gz"


def _options(inputs: Inputs, model: str = "gru", epochs: int = 12, **section: Any) -> SystemOptions:
    """Return the paper's options for the GRU, with options of the task in `section`."""
    return SystemOptions(
        task="phrases",
        phrases=PhrasesOptions(table=str(_table(inputs)), **section),
        model=model,
        cell="cho" if model == "gru" else "torch",
        hidden=200 if model == "gru" else None,
        initial_vectors=str(inputs.vectors),
        epochs=epochs,
        batch_size=128,
    )


def tables(inputs: Inputs) -> dict[str, Table]:
    """Return the table of Figure 2."""
    rows = {
        f"PGRU, k = {k}, {size}": PhraseCell(
            options=_options(inputs, epochs=epochs, samples=k, fraction=share)
        )
        for size, (share, epochs) in _SHARES.items()
        for k in _NEGATIVES
    }
    untrained = PhraseCell(options=_options(inputs, "word-avg", dropout=0.0))
    trained = _options(inputs, "word-avg", dropout=0.0, train_words=True)
    rows |= {
        "AVG, cosine": untrained,
        "AVG, dot": untrained,
        "AVG, trained, k = 29 (ours)": PhraseCell(options=trained),
    }
    claims = [
        Claim(f"PGRU, k = {k}, 100%", f"AVG, {how}")
        for k in _NEGATIVES
        for how in ("cosine", "dot")
    ]
    claims += [
        Claim(f"PGRU, k = {k}, {more}", f"PGRU, k = {k}, {fewer}")
        for k in _NEGATIVES
        for fewer, more in pairwise(_SHARES)
    ]
    by_size = [[f"PGRU, k = {k}, {size}" for k in _NEGATIVES] for size in _SHARES]
    claims += [Claim(more, fewer) for of in by_size for fewer, more in pairwise(of)]
    claims += [
        Claim(f"{middle}{MINUS}{small}", f"{large}{MINUS}{middle}", figures="3.1: more moderate")
        for small, middle, large in by_size
    ]
    table = Table(
        "Pairwise GRU, Figure 2: the paraphrase of a phrase, found among 100",
        rows,
        claims,
        measures={"development": "development", "chosen": "correct"},
        prefixes={row: "cosine " if row == "AVG, cosine" else "" for row in rows},
        unit="Of 100 choices",
        note="12 epochs with all pairs, 30 with 10%, 60 with 1%. Batches of 128, 200 units, words "
        "of 300 dimensions. The GRU does not train the words.",
        paper={"AVG, cosine": {"chosen": 88}, "AVG, dot": {"chosen": 88}},
    )
    return {"pgru": table}
