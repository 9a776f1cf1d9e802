"""Which stages lead to the corpus of a run."""

from paraloom.pipeline.records import PairsRecord, StageRecord
from paraloom.pipeline.report.final_view import pair_stages

ONE = ["ingest", "back_translate", "generate", "score", "bucket", "select"]


def test_the_stages_that_lead_to_a_corpus() -> None:
    stages = {name: StageRecord() for name in ["nmt", *reversed(ONE), "embeddings"]}
    assert pair_stages(stages) == ONE


def test_those_of_the_best_round() -> None:
    """Its scores are further ones of the first round's pairs, its deciles are instead of theirs."""
    own = ["rounds/2/score", "rounds/2/bucket"]
    stages: dict[str, StageRecord] = {name: StageRecord() for name in (*ONE, *own)}
    stages |= {"rounds/1/select": PairsRecord(), "rounds/2/select": PairsRecord()}
    stages |= {"rounds/3/score": PairsRecord(), "select": PairsRecord(round=2)}
    assert pair_stages(stages) == [*ONE[:4], *own, "select"]
