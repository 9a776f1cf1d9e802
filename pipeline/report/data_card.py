"""The data card `corpus/README.md`, with the metadata block that Hugging Face datasets reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import yaml

from beam_jobs.io import schema, storage
from beam_jobs.io.shards import receipts
from models.scorers import ENCODER
from pipeline.report.describe import meaning, selected, selection
from pipeline.report.final_view import kept, kept_round, verdict

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
_LICENSES = {
    *("apache-2.0", "bsd-3-clause", "cc", "cc0-1.0", "gpl-3.0", "mit", "odbl", "pddl"),
    *(f"cc-{kind}-{v}.0" for kind in ("by", "by-sa", "by-nc", "by-nc-sa") for v in (2, 3, 4)),
}
"""Names that the hub knows; others go under `other`."""


def card_path(folder: str) -> str:
    """Where the data card of the run in `folder` stands."""
    return storage.join(folder, "corpus", "README.md")


def write_data_card(folder: str, record: dict[str, Any]) -> bool:
    """Write the data card of a run that has a corpus, if the one that is there says another thing.

    Args:
        record: what the manifest holds: config, inputs, stages.

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


def data_card(record: dict[str, Any], size: int) -> str:
    """The card as text; `size` are the bytes of the part files."""
    loop = _loop(record)
    record = kept(record)
    config, accounts = record["config"], record["stages"]
    select = selected(config["select"], accounts)
    columns = schema.bucketed(tuple(config["score"]["scorers"]))
    head = yaml.safe_dump(_metadata(config, accounts, columns), sort_keys=False, allow_unicode=True)
    name = PurePath(config["run"]).name
    rows, nmt = accounts["corpus"]["rows_out"], config["nmt"]
    model = accounts["back_translate"]["model"]
    trained = accounts.get("nmt", {}).get("training", {})
    inputs = [
        (f"`{PurePath(i['path']).name}`", f"{i['bytes']:,}", f"`{i['sha256']}`")
        for i in record.get("inputs", [])
    ]
    features = [(f"`{f.name}`", _dtype(f.type), meaning(f.name)) for f in columns]
    given = config["input"]["license"]
    chosen = ", score and deciles chosen by training on each" if "choice" in accounts else ""
    return f"""---
{head}---

# {name}: English paraphrases from bitext

{rows:,} pairs of English sentences that should mean the same: the English side of a bitext
(`reference`) and a machine translation of its foreign side (`translation`), in the manner of
ParaNMT-50M (Wieting and Gimpel, 2018). Made with Paraloom.

```python
from datasets import load_dataset

corpus = load_dataset("parquet", data_files="part-*.parquet", split="train")
```

`corpus.tsv.gz` holds `reference`, `translation` and `{select["by"]}`, tab-separated,
without a header.

## What it was made from

{_table(("file", "bytes", "SHA-256"), inputs)}
Licence of the source: {given or "not stated in the configuration"}. Translations are derived from
the source: whoever passes the corpus on must respect its licence.

## How it was made

1. Back-translation: {nmt["engine"]} ({nmt["compute_type"]}), beam {nmt["beam"]}, model with the
   SHA-256 `{model["sha256"]}`{_bleu(trained)}.
2. Every pair was scored, and each score was cut into exact tenths of all pairs.
3. Selection: {selection(select)}{chosen}. Pairs whose sides are the same, and repeated pairs, are
   left out (case and punctuation aside).
{loop}
{_table(("stage", "rows in", "rows on", "not on, and why"), _way(accounts))}
## Size

{rows:,} rows, {size:,} bytes in {accounts["corpus"]["shards"]:,} Parquet files (zstd).

## Columns

{_table(("column", "type", "meaning"), features)}
## Distribution of the scores

The lowest value of each decile, and the highest value of all, over the
{accounts["bucket"]["rows_out"]:,} scored pairs from which the corpus was selected.

{_deciles(accounts["bucket"]["deciles"])}
## Known limits

- No person has checked the pairs. A translation can be wrong, and a wrong one can score well:
  the scores see wording, not truth.
- The English side of the bitext can itself be a translation, or a loose one of its foreign side.
- Subjects, style and prejudices are those of the bitext and of the data that the translation model
  was trained on.
- Deciles are relative to the pairs of this run; they do not compare between corpora.
- Repeats are found when the normalised texts are equal; near repeats stay.
"""


def _metadata(config: dict[str, Any], accounts: dict[str, Any], columns: pa.Schema) -> dict:
    given = config["input"]["license"]
    licence = {"license": "unknown"}
    if given:
        slug = re.sub(r"[^a-z0-9.]+", "-", given.lower()).strip("-")
        known = slug in _LICENSES
        licence = {"license": slug} if known else {"license": "other", "license_name": slug}
    source = config["input"]["source_language"]
    languages = ["en", source] if re.fullmatch("[a-z]{2,3}", source) else ["en"]
    return {
        "pretty_name": f"{PurePath(config['run']).name}: English paraphrases from bitext",
        "language": list(dict.fromkeys(languages)),
        **licence,
        "size_categories": [size_category(accounts["corpus"]["rows_out"])],
        "task_categories": ["sentence-similarity", "text-generation"],
        "tags": ["paraphrase", "back-translation"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": "part-*.parquet"}],
            }
        ],
        "dataset_info": {
            "features": [{"name": f.name, "dtype": _dtype(f.type)} for f in columns],
        },
    }


def size_category(rows: int) -> str:
    """The hub's name for a number of rows.

    >>> size_category(999), size_category(28_200), size_category(51_409_585)
    ('n<1K', '10K<n<100K', '10M<n<100M')
    """
    place = sum(rows >= 10 ** (3 + k) for k in range(len(_SIZES)))
    if place == 0:
        return f"n<{_SIZES[0]}"
    if place == len(_SIZES):
        return f"n>{_SIZES[-1]}"
    return f"{_SIZES[place - 1]}<n<{_SIZES[place]}"


def _dtype(type_: pa.DataType) -> str:
    return "float32" if pa.types.is_float32(type_) else str(type_)


def _loop(record: dict[str, Any]) -> str:
    if not kept_round(record["stages"]):
        return ""
    return (
        "4. An encoder was trained on the selection, scored all pairs, and they were selected\n"
        f"   anew by `{ENCODER}`. {verdict(record)}.\n"
    )


def _bleu(trained: dict[str, Any]) -> str:
    if "bleu" not in trained:
        return ""
    return f",\n   trained on this input, BLEU {trained['bleu']:.1f} on pairs held out from it"


def _way(accounts: dict[str, Any]) -> Iterable[Sequence[str]]:
    for name, account in accounts.items():
        if "rows_in" in account:
            lost = "; ".join(f"{n:,} {reason}" for reason, n in account["rejected"].items())
            yield name, f"{account['rows_in']:,}", f"{account['rows_out']:,}", lost


def _deciles(deciles: dict[str, dict[str, list]]) -> str:
    rows = []
    for decile in range(10):
        lowest = [summary["lowest"][decile] for summary in deciles.values()]
        rows.append([str(decile), *map(_value, lowest)])
    highest = [[v for v in s["highest"] if v is not None] for s in deciles.values()]
    rows.append(["highest", *(_value(max(values, default=None)) for values in highest)])
    return _table(("decile", *(f"`{name}`" for name in deciles)), rows)


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)
