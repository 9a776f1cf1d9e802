"""Figures of "Decoding Decoders" (Zhelezniak et al. 2018), × 100, by model and vector."""

STS: dict[str, dict[str, tuple[float, ...]]] = {
    "dot": {
        "GRU–BOW, encoder": (28.6, 38.1, 36.5, 26.2, 39.2),
        "GRU–GRU, encoder": (26.7, 37.1, 35.7, 37.9, 37.9),
        "GRU–GRU, mean": (33.0, 42.0, 43.8, 41.9, 42.6),
        "GRU–GRU, concat": (33.5, 41.1, 41.3, 41.4, 41.9),
        "BOW–BOW, encoder": (35.1, 41.8, 44.2, 45.5, 53.5),
        "BOW–GRU, encoder": (31.0, 36.5, 39.6, 41.2, 46.9),
        "BOW–GRU, mean": (39.4, 46.9, 49.0, 49.5, 53.0),
        "BOW–GRU, concat": (42.2, 47.8, 49.8, 51.2, 54.4),
    },
    "cosine": {
        "GRU–BOW, encoder": (46.6, 37.6, 47.8, 42.4, 45.4),
        "GRU–GRU, encoder": (32.3, 32.0, 34.5, 40.2, 40.9),
        "GRU–GRU, concat": (41.9, 42.6, 46.6, 49.7, 50.3),
        "BOW–BOW, encoder": (49.7, 52.6, 57.6, 60.4, 60.5),
        "BOW–GRU, encoder": (50.8, 48.3, 57.5, 64.4, 64.1),
        "BOW–GRU, concat": (52.1, 49.1, 56.1, 62.7, 62.5),
    },
}
"""Tables 1 and 5 (dot) and 4 (cosine): Pearson on STS 2012 to 2015, and Spearman on STS 2015."""

TASKS = ("MR", "SST", "TREC", "MRPC", "SICK-R", "SICK-E")
_TRANSFER = {
    "GRU–BOW, encoder": (75.78, 81.99, 84.60, 70.55, 80, 78.81),
    "GRU–GRU, encoder": (77.06, 82.65, 86.60, 71.94, 83, 81.10),
    "GRU–GRU, mean": (76.55, 81.11, 84.80, 73.51, 84, 78.22),
    "GRU–GRU, concat": (76.20, 80.83, 87.20, 71.59, 82, 80.35),
    "BOW–BOW, encoder": (76.16, 81.66, 84.20, 71.07, 84, 80.58),
    "BOW–GRU, encoder": (76.05, 80.83, 87.20, 72.99, 82, 78.87),
    "BOW–GRU, mean": (75.85, 80.12, 84.00, 71.13, 81, 77.76),
    "BOW–GRU, concat": (77.27, 81.82, 89.60, 73.68, 85, 82.26),
}
TRANSFER = {row: dict(zip(TASKS, figures, strict=True)) for row, figures in _TRANSFER.items()}
"""Tables 2 and 6; CR, MPQA and SUBJ are left out, for want of data."""
