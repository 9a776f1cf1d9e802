"""What a configuration says of the candidates of its pairs: who makes them, and their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paraloom.models.chat.options import MOST, ChatGenerator

if TYPE_CHECKING:
    from paraloom.models.chat.options import Generators
    from paraloom.models.nmt.options import NmtOptions


class Candidates:
    """The part of `Config` on generators."""

    if TYPE_CHECKING:
        generators: Generators
        nmt: NmtOptions
        score: Any
        select: Any

    @property
    def chats(self) -> list[ChatGenerator]:
        """The generators that are language models."""
        return [of for of in self.generators or () if isinstance(of, ChatGenerator)]

    @property
    def nmt_name(self) -> str | None:
        """The name of the generator `nmt`, if back-translation is one of several."""
        return next((of.name for of in self.generators or () if of.kind == "nmt"), None)

    @property
    def translates(self) -> bool:
        """Whether back-translation makes candidates."""
        return self.generators is None or self.nmt_name is not None

    @property
    def has_model(self) -> bool:
        """Whether there is a translation model, which scores the candidates."""
        return self.translates or self.nmt.model is not None

    @property
    def variant(self) -> dict[str, bool]:
        """Which of the optional columns the candidates have, as `schema.translated` takes it."""
        several = self.generators is not None
        candidates = several or self.nmt.candidates > 1
        return {"candidates": candidates, "generators": several, "nmt": self.has_model}

    def check_generators(self) -> None:
        """Check what concerns several generators; raises a ValueError."""
        if self.generators is None:
            if self.select.per_generator:
                raise ValueError("select.per_generator: needs several generators")
            return
        names = [of.name for of in self.generators]
        if len({*names}) < len(names):
            raise ValueError("generators: two have the same name")
        if len(self.chats) + bool(self.nmt_name) < len(names):
            raise ValueError("generators: only one can be of kind nmt")
        if not self.chats:
            raise ValueError("generators: names none of kind chat; null is nmt alone")
        total = sum(of.n for of in self.chats) + self.translates * self.nmt.candidates
        if total > MOST:
            raise ValueError(f"generators: {total} candidates of a pair are more than {MOST}")
        share = self.select.per_generator
        if share and share * len(names) < 1:
            raise ValueError(
                f"select.per_generator: {share:g} of {len(names)} generators is not the whole "
                f"corpus; it needs at least {1 / len(names):.3g}"
            )
        if not self.has_model and "translation_score" in self.score.scorers:
            raise ValueError(
                "score.scorers: translation_score needs a translation model; take it out, name "
                "one in nmt.model, or add `kind: nmt` to generators"
            )
