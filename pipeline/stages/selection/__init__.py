"""Stages whose results `select` reads: `auto_select`, `judged` and `exclude`."""

from paraloom.pipeline.config.selection import SelectOptions
from paraloom.pipeline.judging.cuts import JudgedRecord
from paraloom.pipeline.run.records import AutoSelectRecord, RunRecord
from paraloom.pipeline.run.run import Run


def resolve_auto(record: RunRecord | Run) -> SelectOptions:
    """Return the options of `select`. The chosen score and deciles replace `auto` and `judged`.

    If each source has only one candidate, `per_source` is `all`.
    """
    select = record.config.select
    found, judged = record.find(AutoSelectRecord), record.find(JudgedRecord)
    if record.config.nmt.candidates == 1 and not record.config.generators:
        select = select.model_copy(update={"per_source": "all"})
    if select.by == "auto" and found:
        chosen = {"by": found.chosen.scorer, "deciles": list(found.chosen.deciles)}
        return select.model_copy(update=chosen)
    if select.by == "judged" and judged:
        cut = {"by": judged.chosen.score, "deciles": judged.chosen.deciles}
        return select.model_copy(update=cut)
    return select
