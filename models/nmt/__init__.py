"""Neural machine translation: training with fairseq, decoding with CTranslate2.

Importing this package does not import torch, fairseq or CTranslate2.
"""

from paraloom.models.nmt.options import NmtOptions, NmtTrainingOptions
from paraloom.models.nmt.translate import Counters, Translator

__all__ = ["Counters", "NmtOptions", "NmtTrainingOptions", "Translator"]
