"""Training on phrase pairs with a margin on dot products (Zhou, Huang & Ji 2017).

With `initial_vectors`, pairs with unknown words are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout

from paraloom.models.embeddings.comparison import ComparedModel
from paraloom.models.embeddings.encoders.base import Encoder
from paraloom.models.embeddings.ragged_columns import Kind, Sentences, fingerprints, take_all
from paraloom.models.embeddings.tasks import RunInputs
from paraloom.models.embeddings.training.initial_model import new_model
from paraloom.models.embeddings.training.trainer import Memory, Pool, Progress, Trainer
from paraloom.models.embeddings.vocabulary import Vocabulary, ids_by_kind
from paraloom.models.errors import UserError
from paraloom.models.hashing import text_hashes, threshold
from paraloom.models.text.vectors import load_vectors
from paraloom.papers.analyses.phrase_tests import (
    Question,
    choose,
    is_turney2012,
    percent_chosen,
    read_semeval2013,
    read_turney2012,
    semeval2013_training,
    turney2012_mean,
)
from paraloom.papers.datasets.phrases import PhrasePairs, read_phrase_pairs, split
from paraloom.papers.options import PhrasesOptions, SystemOptions


def train(
    options: SystemOptions, folder: Path, *, run: RunInputs, seed: int, language: str
) -> dict[str, Any]:
    """Train on phrase pairs, and return the metrics of the training."""
    section = options.phrases
    assert section is not None
    initial = load_vectors(Path(options.vector_file)) if options.vector_file else None
    data = read_phrase_data(section, initial and initial.words)
    random = np.random.default_rng(seed)
    count = len(data.train)
    data = data.take(np.sort(random.permutation(count)[: round(section.fraction * count)]))
    if not len(data.train):
        raise UserError(
            f"{section.table}: no pair is left to train on (fraction {section.fraction})"
        )
    model = new_model(options, [data.phrases], seed, language=language, initial=initial)
    compared, evaluate = model.named("model"), data.development
    pool, phrases = examples_of(data, model.vocabularies)
    trainer = PhraseTrainer(
        model.encoder,
        Memory(pool, section.table),
        phrases,
        options,
        seed,
        train_words=initial is None or section.train_words,
        evaluate=evaluate and partial(evaluate, compared),
    )
    trainer.fit()
    chosen = data.chosen(compared)
    metrics = {
        **trainer.metrics(),
        "held_out": len(data.test),
        "development_pairs": data.development_pairs,
        "choose_among_100": None if chosen is None else 100 * float(chosen.mean()),
    }
    model.save(
        folder, metrics={**metrics, "history": trainer.progress.evaluations}, texts=list(data.train)
    )
    return metrics


_NONE = np.zeros(0, np.int64)
AMONG = 100  # number of phrases among which the paraphrase is found (Zhou et al. 2017, 3.1)


class PhraseData(NamedTuple):
    """The data of a training with n pairs."""

    phrases: pa.StringArray  # distinct
    train: PhrasePairs
    contrasts: NDArray[np.int64] | None  # [n, c]: indices of `phrases`, or −1; None: sample them
    development: Callable[[ComparedModel], float] | None  # score of a model; higher is better
    development_pairs: int
    test: PhrasePairs

    def take(self, rows: NDArray[np.int64]) -> "PhraseData":
        """Return the data with only the training pairs at `rows`."""
        contrasts = None if self.contrasts is None else self.contrasts[rows]
        return self._replace(train=self.train.take(rows), contrasts=contrasts)

    def chosen(self, model: ComparedModel) -> NDArray[np.bool_] | None:
        """Return `choose` for the test pairs, or None if there are too few phrases."""
        enough = len(self.test) and len(self.phrases) > AMONG
        return choose(model, self.test, self.phrases) if enough else None


def read_phrase_data(section: PhrasesOptions, known: pa.StringArray | None) -> PhraseData:
    """Read a phrase table, or the training data of SemEval-2013 5(a) or Turney (2012).

    Only phrase tables yield test pairs, because SemEval and Turney published separate test sets.
    """
    path = Path(section.table)
    if path.is_dir():
        data = _of_semeval(path, section.held_out)
    elif is_turney2012(path):
        data = _of_turney(path, section.held_out)
    else:
        data = _of_table(path, section, known)
    if section.development:
        other = Path(section.development)
        if other.is_dir():
            words = read_semeval2013(other, ("train",))["train"]
            evaluate = partial(semeval2013_training, data=words)
        else:
            evaluate = partial(turney2012_mean, questions=read_turney2012(other))
        data = data._replace(development=evaluate, development_pairs=0)
    return data


def _of_table(path: Path, section: PhrasesOptions, known: pa.StringArray | None) -> PhraseData:
    pairs = read_phrase_pairs(path, known)
    parts = split(pairs, section.held_out, section.split)
    phrases = pairs.phrases()
    count = len(parts.development)
    evaluate = partial(percent_chosen, pairs=parts.development, others=phrases)
    enough = count and len(phrases) > AMONG
    return PhraseData(phrases, parts.train, None, evaluate if enough else None, count, parts.test)


def _of_semeval(folder: Path, held_out: float) -> PhraseData:
    data = read_semeval2013(folder, ("train",))["train"]
    development = text_hashes(data.phrases) < threshold(held_out)
    words, phrases, same = data.take(~development)
    rest = PhrasePairs(words, phrases)
    evaluate = partial(semeval2013_training, data=data.take(development))
    every, count, train = rest.phrases(), int(development.sum()), rest.take(same)
    return PhraseData(every, train, None, evaluate if count else None, count, rest.take(_NONE))


def _of_turney(path: Path, held_out: float) -> PhraseData:
    """Return two pairs for each question.

    In the first pair (stem, solution), the contrasts are the other choices. In the second pair
    (solution, stem), the contrast is the reverse stem.
    """
    questions = read_turney2012(path)
    hashes = text_hashes(pa.array([question.stem for question in questions]))
    train, development = list[Question](), list[Question]()
    for question, left_out in zip(questions, hashes < threshold(held_out), strict=True):
        (development if left_out else train).append(question)
    if not train:
        raise UserError(
            f"{path}: no question is left to train on; lower embeddings.phrases.held_out"
        )
    left, right, others = [], [], list[Sequence[str]]()
    for question in train:
        solution, *wrong = question.five
        left += [question.stem, solution]
        right += [solution, question.stem]
        others += [wrong, [question.reverse]]
    pairs = PhrasePairs(pa.array(left), pa.array(right))
    phrases = pa.array([*left, *(phrase for of in others for phrase in of)]).unique()
    rows = {phrase: row for row, phrase in enumerate(phrases.to_pylist())}
    contrasts = np.full((len(pairs), max(map(len, others))), -1)
    for row, of in enumerate(others):
        contrasts[row, : len(of)] = [rows[phrase] for phrase in of]
    evaluate = partial(turney2012_mean, questions=development) if development else None
    return PhraseData(phrases, pairs, contrasts, evaluate, len(development), pairs.take(_NONE))


@dataclass(frozen=True, eq=False)
class PhraseExamples(Pool["PhraseExamples"]):
    """n pairs with their contrast phrases, as indices of phrases."""

    left: NDArray[np.int64]  # [n]
    right: NDArray[np.int64]  # [n]
    contrasts: NDArray[np.int64] | None = None  # [n, c], −1 for no phrase; None: sample them
    identical: int = 0
    empty: int = 0

    def __len__(self) -> int:
        return len(self.left)

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the pairs with the indices `rows`, in this order."""
        contrasts = None if self.contrasts is None else self.contrasts[rows]
        return type(self)(self.left[rows], self.right[rows], contrasts)


def examples_of(
    data: PhraseData, vocabularies: Mapping[Kind, Vocabulary]
) -> tuple[PhraseExamples, Sentences]:
    """Return the pairs, and the distinct phrases as ids. Pairs with equal ids are left out."""
    ids = ids_by_kind(vocabularies, data.phrases)
    _, first, row = np.unique(
        fingerprints(next(iter(ids.values()))), return_index=True, return_inverse=True
    )
    left, right = (row[pc.index_in(side, data.phrases).to_numpy()] for side in data.train)
    keep = left != right
    contrasts = data.contrasts
    if contrasts is not None:
        contrasts = np.where(contrasts < 0, -1, row[contrasts])[keep]
    pool = PhraseExamples(left[keep], right[keep], contrasts, int((~keep).sum()))
    return pool, take_all(ids, first)


class PhraseTrainer(Trainer[PhraseExamples]):
    """Trains by plain gradient descent.

    The indices of examples refer to `phrases`. `evaluate` scores the current weights, and `fit`
    selects the best epoch. Without `evaluate`, the last weights are used.
    """

    adam = False

    def __init__(
        self,
        encoder: Encoder,
        source: Memory[PhraseExamples],
        phrases: Sentences,
        options: SystemOptions,
        seed: int,
        *,
        train_words: bool = True,
        evaluate: Callable[[], float] | None = None,
    ) -> None:
        assert options.phrases is not None
        self.trains_words, self.phrases, self.section = train_words, phrases, options.phrases
        steps = {key: getattr(self.section, key) for key in ("learning_rate", "clip")}
        super().__init__(encoder, source, options.replace(**steps), seed, evaluate=evaluate)

    def new_optimizer(self, weights: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Return plain gradient descent with the regularisation λ_c ‖W‖²."""
        rate, decay = self.options.learning_rate, 2 * self.options.lambda_c
        return torch.optim.SGD(weights, rate, weight_decay=decay, fused=True)

    def fit(self) -> Progress:
        """Train, unless the encoder has no weights to train."""
        if not self.weights and not self.matrices:
            if self.evaluate is not None:
                self.progress.best = self.evaluate()
            self.encoder.eval()
            return self.progress
        return super().fit()

    def contrasts(self, batch: PhraseExamples) -> NDArray[np.int64]:
        """Return indices of contrast phrases, [n, k]. Phrases of the pair itself become −1."""
        found = batch.contrasts
        if found is None:
            random = np.random.default_rng([self.seed, self.progress.step])
            count = len(next(iter(self.phrases.values())).lengths)
            found = random.integers(count, size=(len(batch), self.section.samples))
        own = (found == batch.left[:, None]) | (found == batch.right[:, None])
        return np.where(own, -1, found)

    def train_on(self, batch: PhraseExamples) -> None:
        """Make a step on a mini-batch, in which each phrase is encoded only once."""
        rows = self.contrasts(batch)
        n, k = rows.shape
        every = np.concatenate([batch.left, batch.right, rows.clip(min=0).ravel()])
        used, index = np.unique(every, return_inverse=True)
        torch.manual_seed(self.noise_seed)
        vectors = dropout(self.encode(take_all(self.phrases, used)), self.section.dropout)
        vectors = vectors.index_select(0, torch.from_numpy(index).to(self.device))
        left, right, contrasts = torch.split(vectors, [n, n, n * k])
        allowed = torch.from_numpy(rows >= 0).to(vectors)
        contrasts = contrasts.view(n, k, -1)
        margin = self.section.margin
        self.optimizer_step(contrastive_loss(left, right, contrasts, allowed, margin))

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the training."""
        untrained = {} if self.progress.step else {"pairs": self.source.rows, "loss": None}
        found = {**super().metrics(), **untrained, "development": self.progress.best}
        best = self.evaluations() if self.progress.evaluations else {}
        return found | {key: best[key] for key in ("best_epoch", "epochs") if best}


def contrastive_loss(
    left: Tensor, right: Tensor, contrasts: Tensor, allowed: Tensor, margin: float
) -> Tensor:
    """Return the mean loss of n pairs (p₁, p₂) with k contrast phrases cᵢ each, a scalar.

        Σᵢ max(0, δ - p₁·p₂ + p₁·cᵢ)                                (Zhou, Huang & Ji 2017, 2.4)

    `contrasts` are [n, k, dim]. `allowed`, [n, k], is 1 for contrast phrases that count, or 0.
    """
    hinges = margin - torch.linalg.vecdot(left, right).unsqueeze(1)
    hinges = hinges + (contrasts @ left.unsqueeze(2)).squeeze(2)
    total: Tensor = (hinges.clamp_min(0) * allowed).sum()
    return total / len(left)
