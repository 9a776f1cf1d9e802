"""The figures of ParaNMT-50M (Wieting & Gimpel 2017, version 1), by row and measure."""

from collections.abc import Mapping

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


TABLE_3: Paper = {
    f"{source}, {model}": {"sts_2017": figure}
    for source, figures in {
        "Common-crawl": (80.9, 80.2, 79.1),
        "CzEng": (83.6, 81.5, 82.5),
        "Europarl": (78.9, 78.0, 80.4),
        "News": (80.2, 78.2, 80.5),
    }.items()
    for model, figure in zip(SIMPLE, figures, strict=True)
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
_LEADS = ("mean", "msrvid", "images_2014", "images_2015")
TABLE_11: Paper = {
    f"Trigram-Word over InferSent ({data})": dict(zip(_LEADS, figures, strict=True))
    for data, figures in {"AllNLI": (10.5, 5.2, 6.4, 3.6), "SNLI": (12.5, 4.6, 4.8, 3.0)}.items()
}
TABLE_12: Paper = {
    "InferSent (AllNLI)": {"stsb": 70.6, "captions": 83.0, "others": 56.6},
    "InferSent (SNLI)": {"stsb": 67.3, "captions": 83.4, "others": 51.7},
    "Trigram-Word, concatenated": {"stsb": 79.9, "captions": 87.1, "others": 71.7},
}
