"""`paraloom frontier`: compares selections that trade meaning for difference in wording."""

from paraloom.models.errors import UserError
from paraloom.pipeline.commands.console import console, number_table
from paraloom.pipeline.commands.options import JsonFile, RunFolder, write_json
from paraloom.pipeline.judging.cuts import ENOUGH
from paraloom.pipeline.judging.describe import good_of
from paraloom.pipeline.judging.judgments import read_judgments
from paraloom.pipeline.judging.sampling import ScoredRun
from paraloom.pipeline.pages.describe import selection_in_words
from paraloom.pipeline.pages.tradeoffs import PAIRS, Sample
from paraloom.pipeline.run.records import BucketRecord
from paraloom.pipeline.stages.selection import resolve_auto


def command(run: RunFolder, json: JsonFile = None) -> None:
    """Compare selections that keep as many pairs as the selection of the run.

    If the run has judgments, the column `judged good` shows how many judged pairs are good.
    """
    scored = ScoredRun(run)
    view = scored.record.best
    bucket, select, found = view.find(BucketRecord), resolve_auto(view), None
    if bucket and bucket.rows_out:
        sample = Sample.read(scored.shards(), view, scored.scores, read_judgments(run))
        found = sample.frontier(select.criteria(), scored.scores)
    if found is None:
        raise UserError(
            f"{run}: needs {ENOUGH} selected pairs in a sample of up to {PAIRS:,}, and "
            "score.scorers that measure wording and meaning, such as content_overlap and "
            "sentence_similarity"
        )
    bounds = [f"{each.column} {each.operator}" for each in found.moved]
    columns = ["pairs", "median difference", "median meaning", "judged good"]
    table = number_table("Selections of equal size", numbers=[*bounds, *columns])
    for each in (*found.points, found.chosen):
        bounds = found.shown_bounds(each) or ["run's selection", ""]
        medians = (f"{median:.3g}" for median in (each.difference, each.meaning))
        table.add_row(*bounds, f"{each.rows:,}", *medians, good_of(each.good, each.judged))
    out = console()
    out.print(table)
    out.print(f"Selected: {selection_in_words(select, str)}", soft_wrap=True)
    write_json(json, found)
