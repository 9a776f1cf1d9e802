"""Labelled files: pairs of sentences that people labelled elsewhere, with labels from 0 to 100.

STS (0 to 5) and SICK (1 to 5) as `paraloom.models.embeddings.datasets.similarity` reads them, the
Microsoft Research Paraphrase Corpus (0 or 1), and judgments (0 to 100): tab-separated with a header
that has `reference`, `paraphrase` or `translation`, `score`, and perhaps `reference_id`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from paraloom.beam_jobs.io import schema
from paraloom.models.agreement.precision import DECILES, exact_deciles
from paraloom.models.embeddings.datasets.lines import tab_separated
from paraloom.models.embeddings.datasets.similarity import judgment_columns, read_labelled
from paraloom.models.errors import UserError, reading
from paraloom.models.scorers import ENCODER, SCORERS, PairScorer
from paraloom.models.scorers.plugins import ScorerSource
from paraloom.pipeline.judging.agreement import JudgedPairs, conditions

_MRPC = ("#1 String", "#2 String", "Quality")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTexts:
    """n labelled pairs."""

    first: pa.StringArray  # [n]
    second: pa.StringArray  # [n]
    labels: npt.NDArray[np.float64]  # [n], 0 to 100
    references: npt.NDArray[Any]  # [n]: pairs of the same reference have the same value


def read_labels(path: str) -> LabelledTexts:
    """Read a labelled file, or a folder of STS or SICK; its form is known by the header."""
    file = Path(path)
    if not file.exists():
        raise UserError(f"--labels {path}: is not there")
    header = next(tab_separated(file), (1, [""]))[1] if file.is_file() else []
    if set(_MRPC) <= set(header):
        return _read(file, *_MRPC, highest=1)
    if columns := judgment_columns(header):
        return _read(file, *columns, highest=100)
    sets = read_labelled(file)
    first = pa.concat_arrays([data.first for data in sets])
    return LabelledTexts(
        first=first,
        second=pa.concat_arrays([data.second for data in sets]),
        labels=np.concatenate(
            [100 * (d.scores - d.scale[0]) / (d.scale[1] - d.scale[0]) for d in sets]
        ),
        references=np.array(first.to_pylist(), object),
    )


def _read(path: Path, first: str, second: str, label: str, *, highest: float) -> LabelledTexts:
    """Read a tab-separated file with a header, by the names of its columns."""
    types = dict.fromkeys((first, second, "reference_id"), pa.string()) | {label: pa.float64()}
    with reading(path):
        rows = pacsv.read_csv(
            path,
            parse_options=pacsv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=pacsv.ConvertOptions(column_types=types, strings_can_be_null=False),
        ).combine_chunks()
    labels = rows[label].to_numpy()
    if not len(labels):
        raise UserError(f"{path}: no row with a label")
    if wrong := np.flatnonzero(~((labels >= 0) & (labels <= highest))).tolist():
        raise UserError(
            f"{path}, row {wrong[0] + 2}: {label} {labels[wrong[0]]:g} is not a number from 0 to "
            f"{highest:g}"
        )
    group = "reference_id" if "reference_id" in rows.column_names else first
    return LabelledTexts(
        first=rows[first].combine_chunks(),
        second=rows[second].combine_chunks(),
        labels=100 * labels / highest,
        references=np.array(rows[group].to_pylist(), object),
    )


def score_labels(
    texts: LabelledTexts,
    names: Sequence[str],
    *,
    sources: Sequence[ScorerSource] = (),
    language: str,
    resources: Mapping[str, Any],
    where: Sequence[str] = (),
) -> JudgedPairs:
    """Score labelled pairs; scores that need more than two texts are left out.

    Deciles are cut over the file, without copies. `sources` have the scorers that are not
    Paraloom's; `resources` are as for `PairScorer`.
    """
    known = SCORERS | {source.name: source.load() for source in sources}
    left_out = {name: reason for name in names if (reason := _missing(name, known, resources))}
    used = [name for name in names if name not in left_out]
    if not used:
        reasons = "; ".join(f"{name} {reason}" for name, reason in left_out.items())
        raise UserError(f"--labels: no score can be computed on this file: {reasons}")
    differ = pc.not_equal(texts.first, texts.second)
    kept = differ.to_numpy(zero_copy_only=False)
    scorer = PairScorer(used, sources=sources, language=language, **resources)
    values = scorer.score(texts.first.filter(differ), texts.second.filter(differ))
    scores = {name: np.asarray(values[name], float) for name in used}
    for name, of in scores.items():
        if not np.isfinite(of).all():
            raise UserError(f"--labels: {name} gives a pair no number (NaN or infinite)")
    deciles = {name: exact_deciles(of) for name, of in scores.items()}
    columns = {**values, **{schema.decile(name): of for name, of in deciles.items()}}
    meets = np.ones(int(kept.sum()), bool)
    for predicate in (predicates := conditions(where, used)):
        meets &= predicate.holds(np.asarray(columns[predicate.column]))
    deciles = {name: of[meets] for name, of in deciles.items()}
    return JudgedPairs(
        labels=texts.labels[kept][meets],
        references=texts.references[kept][meets],
        scores={name: of[meets] for name, of in scores.items()},
        deciles=deciles,
        rows={n: np.bincount(of, minlength=DECILES).tolist() for n, of in deciles.items()},
        higher_is_better={name: known[name].higher_is_better for name in used},
        counts={
            "copies": int(np.count_nonzero(~kept)),
            "where": list(map(str, predicates)),
            "outside": int(np.count_nonzero(~meets)),
        },
        left_out=left_out,
    )


def _missing(name: str, known: Mapping[str, Any], resources: Mapping[str, Any]) -> str:
    """What the file lacks for a score; "" if it can be computed."""
    if name not in known:
        if name == "translation_score":
            return "needs the model that translated"
        return "is not computed from the two texts"
    scorer = known[name]
    if more := [column for column in scorer.reads if column not in ("reference", "translation")]:
        return f"needs the {' and the '.join(more)} of each pair"
    if scorer.resource and resources.get(scorer.resource.name) is None:
        return f"needs {scorer.resource.remedy}"
    return ""


def default_names() -> list[str]:
    """Paraloom's scorers that need nothing but the two texts; for files without a run."""
    return [name for name, scorer in SCORERS.items() if not scorer.resource and name != ENCODER]
