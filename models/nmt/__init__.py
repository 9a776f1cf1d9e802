"""Neural machine translation: training with fairseq, decoding with CTranslate2.

Importing this package imports neither torch nor fairseq nor CTranslate2. Building a `Translator`
does; once the model has been converted, it imports CTranslate2 only.
"""

from paraloom.models.nmt.options import NmtOptions, NmtTrainingOptions
from paraloom.models.nmt.translate import Counters, Translator

__all__ = ["Counters", "NmtOptions", "NmtTrainingOptions", "Translator"]
