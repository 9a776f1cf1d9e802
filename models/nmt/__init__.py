"""Neural machine translation: fairseq models, trained here or elsewhere, and how they decode.

Importing this package loads neither torch nor fairseq nor CTranslate2; building a `Translator` does
(with the default engine CTranslate2 alone, once a model has been converted).
"""

from models.nmt.options import NmtOptions, NmtTrainingOptions
from models.nmt.translate import Counters, Translator

__all__ = ["Counters", "NmtOptions", "NmtTrainingOptions", "Translator"]
