"""cross_encoder_model: the model of the scorer `cross_encoder`."""

from paraloom.models.scorers.learned.sentence_similarity import find_cross_encoder
from paraloom.pipeline.stages.resources.pair_models import model_stage

STAGE = model_stage("cross_encoder_model", find_cross_encoder)
