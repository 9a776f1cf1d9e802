"""MaLSTM: the distance between the last states of an LSTM (Mueller & Thyagarajan 2016).

The LSTM is first trained on the pairs of `pretrain`, and then on the data with `augmented` pairs.
Word vectors are not trained.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from paraloom.models.embeddings.applications.evaluation import embed_pairs
from paraloom.models.embeddings.comparison import Embed
from paraloom.models.embeddings.datasets.similarity import LabelledPairs, read_labelled
from paraloom.models.embeddings.tasks import RunInputs
from paraloom.models.embeddings.training.initial_model import device_of, new_model
from paraloom.models.errors import UserError
from paraloom.papers.analyses.transfer import pair_features
from paraloom.papers.datasets.splits import augmented, pool, read_synonyms, shares, split
from paraloom.papers.heads import Manhattan
from paraloom.papers.options import SystemOptions
from paraloom.papers.tasks.similarity import LabelTrainer, label_errors

_SCALE = 0.01  # standard deviation of initial weights, selected on held-out pairs of SICK
_FORGET = 2.5  # initial bias of the forget gates
FOLDS = 5
_C = (1.0, 10.0, 100.0)
_GAMMA = (0.1, 0.3, 1.0)  # to be divided by the number of features


def train(
    options: SystemOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train on labelled pairs, and return the metrics of the training."""
    section = options.malstm
    assert section is not None
    data = split(section.data, held_out=section.held_out, train_trial=True)
    lowest, highest = data.train.scale
    other = [
        rescaled(pairs, data.train.scale) for p in section.pretrain for pairs in read_labelled(p)
    ]
    texts = [side for pairs in [data.train, *other] for side in (pairs.first, pairs.second)]
    model = new_model(options, texts, seed, language=language)
    head = Manhattan(lowest=lowest, highest=highest).to(device_of(options))
    model.head = head
    initialise(model.encoder, seed)

    settings: dict[str, Any] = {"algorithm": "adadelta", "patience": section.patience}
    if other:
        rest, held_out = shares(pool(other), (1 - section.held_out, section.held_out))
        LabelTrainer(model, rest, held_out, seed, **settings).fit()
    pairs = data.train
    if section.synonyms:
        synonyms = read_synonyms(section.synonyms)
        more = augmented(data.train, synonyms, section.augmented, seed=seed)
        pairs = pool([replace(data.train, entailment=None), more])
    trainer = LabelTrainer(model, pairs, data.development, seed, **settings)
    trainer.fit()
    metrics = {
        "pairs": len(data.train),
        "augmented": len(pairs) - len(data.train),
        "pretraining_pairs": sum(map(len, other)),
        "development_pairs": len(data.development),
        **trainer.metrics(),
    }
    labelled = pool([data.train, data.development])
    if section.calibrate:
        metrics["uncalibrated"] = label_errors(model.named("model"), data.test)
        sides = embed_pairs(model.embed, labelled.first, labelled.second)
        metrics["bandwidth"] = head.calibrate(*sides, labelled.scores)
    metrics["test"] = label_errors(model.named("model"), data.test)
    if labelled.entailment is not None and section.entailment:
        metrics["entailment"] = entailment(model.embed, labelled, data.test, seed=seed)
    history = trainer.progress.evaluations
    model.save(folder, metrics={**metrics, "history": history}, texts=texts[:2])
    return metrics


def initialise(encoder: nn.Module, seed: int) -> None:
    """Set small Gaussian weights and zero biases. The biases of forget gates are `_FORGET`."""
    generator = torch.Generator().manual_seed(seed)
    networks = [module for module in encoder.modules() if isinstance(module, nn.LSTM)]
    if not networks:
        raise UserError("embeddings.model: MaLSTM needs an encoder with an LSTM, such as lstm")
    with torch.no_grad():
        for network in networks:
            from_input, recurrent, bias, other_bias = network.all_weights[0]
            for weight in (from_input, recurrent):
                weight.copy_(torch.randn(weight.shape, generator=generator) * _SCALE)
            other_bias.zero_()
            bias.zero_()
            bias[network.hidden_size : 2 * network.hidden_size] = _FORGET  # i, f, g, o


def rescaled(data: LabelledPairs, scale: tuple[float, float]) -> LabelledPairs:
    """Rescale the labels of a data set to another scale."""
    relative = (data.scores - data.scale[0]) / (data.scale[1] - data.scale[0])
    scores = scale[0] + relative * (scale[1] - scale[0])
    return replace(data, scores=scores, scale=scale, entailment=None)


def entailment(
    embed: Embed, train: LabelledPairs, tests: Sequence[LabelledPairs], *, seed: int
) -> dict[str, Any]:
    """Train an SVM with an RBF kernel on `pair_features`, and return its accuracy in percent.

    Features are standardised, which the paper does not mention.
    """
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    features = pair_features(embed, train.first, train.second)
    of_each = "onevsrestclassifier__estimator__"
    gammas = [gamma / features.shape[1] for gamma in _GAMMA]
    grid = {f"{of_each}C": _C, f"{of_each}gamma": gammas}
    svms = OneVsRestClassifier(SVC(kernel="rbf", cache_size=500))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(make_pipeline(StandardScaler(), svms), grid, cv=folds)
    search.fit(features, _judgments(train))
    accuracy = {}
    for data in tests:
        share = search.score(pair_features(embed, data.first, data.second), _judgments(data))
        accuracy[f"{data.group} {data.name}"] = 100 * float(share)
    return {"cross_validation": 100 * float(search.best_score_), "accuracy": accuracy}


def _judgments(data: LabelledPairs) -> NDArray[Any]:
    assert data.entailment is not None
    return np.asarray(data.entailment.to_numpy(zero_copy_only=False))
