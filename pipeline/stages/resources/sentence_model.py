"""sentence_model: the model of the scorer `sentence_similarity`."""

from paraloom.models.scorers.learned.sentence_similarity import find_sentence_model
from paraloom.pipeline.stages.resources.pair_models import model_stage

STAGE = model_stage("sentence_model", find_sentence_model)
