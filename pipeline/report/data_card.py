"""The data card `corpus/README.md`, with the metadata block that Hugging Face datasets reads."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import yaml

from beam_jobs.io import schema, storage
from beam_jobs.io.shards import Deciles, receipts
from models.languages import language_name, short_code
from models.scorers import ENCODER
from pipeline.judging.record import JudgedRecord
from pipeline.records import (
    BackTranslateRecord,
    BucketRecord,
    ConfigRecord,
    InputSection,
    PairsRecord,
    PivotRecord,
    RunRecord,
)
from pipeline.report.describe import count, decoding, meaning, resolve_auto, selection_in_words
from pipeline.report.final_view import best_round, final_view, verdict
from pipeline.report.render import Markdown, code, render_markdown

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
_LICENSES = {
    *("apache-2.0", "bsd-3-clause", "cc", "cc0-1.0", "gpl-3.0", "mit", "odbl", "pddl"),
    *(f"cc-{kind}-{v}.0" for kind in ("by", "by-sa", "by-nc", "by-nc-sa") for v in (2, 3, 4)),
}
"""Names that the hub knows; other licences are listed as `other`."""


def card_path(folder: str) -> str:
    """The path of the data card of the run in `folder`."""
    return storage.join(folder, "corpus", "README.md")


def write_data_card(folder: str, record: RunRecord) -> bool:
    """Write the data card of a run that has a corpus, unless the card that is there is the same.

    Returns:
        whether it was written.

    Raises:
        UserError: the folder cannot be written.
    """
    shards = [s for r in receipts(storage.join(folder, "corpus")) for s in r.shards]
    text = data_card(record, sum(storage.size(shard.path) for shard in shards)).encode()
    path = card_path(folder)
    if storage.exists(path) and storage.read_bytes(path) == text:
        return False
    storage.write_bytes(path, text)
    return True


def data_card(record: RunRecord, size: int) -> str:
    """The card of a run with a corpus as text.

    Args:
        size: bytes of the part files.
    """
    view = final_view(record)
    config, select = view.config, resolve_auto(view)
    corpus = view.find(PairsRecord, "corpus") or PairsRecord()
    bucket = view.find(BucketRecord) or BucketRecord()
    translated = view.find(BackTranslateRecord) or BackTranslateRecord()
    source = config.input or InputSection()
    candidates = config.nmt.candidates > 1
    language = language_name(source.target_language)
    columns = schema.bucketed(tuple(config.score.names), candidates=candidates)
    head = _metadata(config, source, corpus.rows_out, columns)
    return render_markdown(
        "data_card.md.j2",
        metadata=Markdown(yaml.safe_dump(head, sort_keys=False, allow_unicode=True)),
        name=PurePath(config.run).name,
        language=language,
        rows=corpus.rows_out,
        shards=corpus.shards,
        size=size,
        license=source.license,
        nmt=config.nmt,
        decoding=decoding(config.nmt),
        model=translated.model,
        forward=pivot.model if (pivot := view.find(PivotRecord)) else None,
        source_language=source.source_language,
        bleu=view.bleu,
        select=select,
        selection=Markdown(selection_in_words(select)),
        auto_selected="choice" in view.stages,
        cut=judged.chosen if (judged := view.find(JudgedRecord)) else None,
        verdict=verdict(record) if best_round(record.stages) else "",
        encoder=ENCODER,
        inputs=[(code(PurePath(i.path).name), count(i.bytes), code(i.sha256)) for i in view.inputs],
        stages=[
            (name, count(stage.rows_in), count(stage.rows_out), _reasons(stage))
            for name, stage in view.pair_records.items()
        ],
        columns=[
            (code(f.name), _dtype(f.type), text if f.name in view.own_scorers else Markdown(text))
            for f in columns
            for text in [meaning(f.name, language, view.own_scorers)]
        ],
        scored=bucket.rows_out,
        scores=[code(name) for name in bucket.deciles],
        deciles=list(_distribution(list(bucket.deciles.values()))),
    )


def _metadata(
    config: ConfigRecord, source: InputSection, rows: int, columns: pa.Schema
) -> dict[str, Any]:
    license = {"license": "unknown"}
    if source.license:
        slug = re.sub(r"[^a-z0-9.]+", "-", source.license.lower()).strip("-")
        known = slug in _LICENSES
        license = {"license": slug} if known else {"license": "other", "license_name": slug}
    codes = (short_code(code) for code in (source.target_language, source.source_language))
    languages = (code.partition("-")[0] for code in codes)
    language = language_name(source.target_language)
    files = {"split": "train", "path": "part-*.parquet"}
    return {
        "pretty_name": f"{PurePath(config.run).name}: {language} paraphrases from bitext",
        "language": [code for code in dict.fromkeys(languages) if re.fullmatch("[a-z]{2,3}", code)],
        **license,
        "size_categories": [size_category(rows)],
        "task_categories": ["sentence-similarity", "text-generation"],
        "tags": ["paraphrase", "back-translation"],
        "configs": [{"config_name": "default", "data_files": [files]}],
        "dataset_info": {
            "features": [{"name": f.name, "dtype": _dtype(f.type)} for f in columns],
        },
    }


def size_category(rows: int) -> str:
    """The hub's name for a number of rows.

    >>> size_category(999), size_category(28_200), size_category(51_409_585)
    ('n<1K', '10K<n<100K', '10M<n<100M')
    """
    between = (f"{low}<n<{high}" for low, high in pairwise(_SIZES))
    names = [f"n<{_SIZES[0]}", *between, f"n>{_SIZES[-1]}"]
    return names[sum(rows >= 10.0 ** (3 + k) for k in range(len(_SIZES)))]


def _dtype(type_: pa.DataType) -> str:
    return "float32" if pa.types.is_float32(type_) else str(type_)


def _reasons(stage: PairsRecord) -> str:
    return "; ".join(f"{rows:,} {reason}" for reason, rows in stage.rejected.items())


def _distribution(scores: list[Deciles]) -> Iterator[list[str]]:
    """The lowest value of each decile, by score; then the highest value of each score."""
    for decile in range(10):
        yield [str(decile), *(_value(of.lowest[decile]) for of in scores)]
    highest = (max((v for v in of.highest if v is not None), default=None) for of in scores)
    yield ["highest", *map(_value, highest)]


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
