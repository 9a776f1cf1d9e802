"""Neural machine translation with fairseq models: training and decoding.

Importing this package imports neither torch nor fairseq nor CTranslate2; building a `Translator`
does. With the default engine it imports CTranslate2 only, once the model has been converted.
"""

from paraloom.models.nmt.options import NmtOptions, NmtTrainingOptions
from paraloom.models.nmt.translate import Counters, Translator

__all__ = ["Counters", "NmtOptions", "NmtTrainingOptions", "Translator"]
