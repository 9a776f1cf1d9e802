"""Stage `loop`: chooses the best round."""

import numpy as np

from paraloom.beam_jobs.engine.shards import content_key
from paraloom.beam_jobs.storage import remote
from paraloom.pipeline.run.records import LoopRecord
from paraloom.pipeline.run.run import Run
from paraloom.pipeline.stages.selection import auto_select

fingerprint, check = auto_select.labelled_digests, auto_select.read_labelled


def make(run: Run, key: str) -> LoopRecord:
    """Choose the round with the highest mean Pearson × 100 over the labelled data sets.

    Of equally good rounds, the earliest is chosen.
    """
    from paraloom.models.embeddings.applications.evaluation import agreement
    from paraloom.models.embeddings.model import load_encoder

    labelled = auto_select.read_labelled(run.config)
    scores = []
    for of in run.children.values():
        embed = load_encoder(remote.localise(of.folder("embeddings"))).embed
        found = [agreement(embed, data).pearson for data in labelled]
        scores.append(round(float(np.mean(np.nan_to_num(found))), 4))
    best = 1 + scores.index(max(scores))
    return LoopRecord(
        labelled=scores,
        data_sets=len(labelled),
        pairs=sum(len(data.first) for data in labelled),
        best=best,
        digest=content_key(scores, best),
    )
