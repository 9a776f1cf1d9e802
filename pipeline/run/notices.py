"""One-line notices of possible mistakes, such as training on test data."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from paraloom.models.embeddings.options import AUTO
from paraloom.models.languages import ENGLISH, language_name
from paraloom.models.printing import say
from paraloom.pipeline.config import Config
from paraloom.pipeline.config.languages import of_codes

ENOUGH = 10_000
"""Number of training pairs below which a notice is printed."""


def notify(lines: Iterable[str]) -> None:
    """Print notices on stderr."""
    for line in lines:
        say(f"paraloom: {line}")


def of_configuration(config: Config, stages: Collection[str]) -> Iterator[str]:
    """Yield notices about a configuration. Some notices depend on the `stages` that will run."""
    if "evaluate" in stages:
        tests = {"sts": config.evaluate.sts, "sick": config.evaluate.sick}
        for path in map(Path.resolve, map(Path, config.embeddings.development_files)):
            for name, folder in tests.items():
                test = Path(folder).resolve() if folder else None
                if test and (path.is_relative_to(test) or test.is_relative_to(path)):
                    yield (
                        f"embeddings.development: {path} is also in evaluate.{name}; the results "
                        f"of evaluate.{name} are results on development data"
                    )
    if config.input is None:
        return
    own, default = config.score.model_fields_set, "paragram_similarity"
    if "score" in stages and default not in config.score.scorers and "scorers" not in own:
        yield (
            f"score: {default} is left out, because it needs score.phrases (phrase pairs) or "
            f"score.paragram (word vectors); select uses deciles of {config.select.by}"
        )
    yield from of_codes(config.input)


def of_training(config: Config, pairs: int, *, own_vectors: bool) -> Iterator[str]:
    """Yield a notice if an encoder is trained on few pairs or from random vectors."""
    random = config.embeddings.initial_vectors in (None, AUTO) and not own_vectors
    starts = "the encoder starts from random vectors, and has vectors only for words of the corpus"
    few = f"{pairs:,} pairs are few: for good results on new texts, train on 10,000 pairs or more"
    if found := [*([few] if pairs < ENOUGH else []), *([starts] if random else [])]:
        remedy = "; set embeddings.initial_vectors" if random else ""
        yield f"embeddings: {'; '.join(found)}{remedy}"


def of_similarities(values: np.ndarray, pairs: str) -> Iterator[str]:
    """Yield a notice if `paragram_similarity` is 0 for all pairs. `pairs` describes the pairs."""
    if len(values) and not values.any():
        yield (
            f"score: paragram_similarity of {pairs} is 0; use word vectors for their language, "
            "with lower-case words"
        )


def of_models(languages: Mapping[str, str], data: str) -> Iterator[str]:
    """Yield a notice for each encoder that is not for English. `data` is a text like "SICK is"."""
    for folder, language in languages.items():
        if language != ENGLISH:
            yield f"{folder}: the encoder is for {language_name(language)}; {data} English"
