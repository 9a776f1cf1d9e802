"""Records of the agreement of scores with judgments."""

from pydantic import Field

from paraloom.pipeline.judging.cuts import Cut, Interval
from paraloom.pipeline.run.records import Lenient, StageRecord


class ScoreAgreement(Lenient):
    """The agreement of one score with the labels."""

    spearman: float | None  # None if a side is constant
    interval: Interval | None  # 95%
    good: list[int]  # good pairs in each decile, 0 the lowest
    judged: list[int]
    rows: list[int]  # pairs of the run or of the file in each decile, without equal sides
    higher_is_better: bool = True


class AgreementRecord(Lenient):
    """The scores of judged pairs beside their labels."""

    pairs: int  # judged pairs that are counted
    references: int
    rows: int  # all pairs of the run or of the file, without equal sides
    good: float  # least label of a good pair, out of 100
    good_pairs: int
    copies: int = 0  # judged pairs of equal sides, not counted
    judges: int = 0
    alpha: float | None = None  # Krippendorff's, between the judges
    judgments: int = 0
    gone: int = 0  # judgments of pairs that the run does not have, or with other texts now
    where: list[str] = Field(default=[])  # conditions on the pairs that are counted
    outside: int = 0  # judged pairs that do not meet them
    scores: dict[str, ScoreAgreement]
    cuts: list[Cut]  # one for each wanted precision; empty if no cut can be measured


class JudgedRecord(StageRecord, stage="judged"):
    """The scorer and the deciles that `select.by: judged` found."""

    agreement: AgreementRecord

    @property
    def chosen(self) -> Cut:
        """The cut whose deciles are selected."""
        return self.agreement.cuts[0]
