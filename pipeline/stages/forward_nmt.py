"""Stage `forward_nmt`: trains a model that translates references into sources."""

from functools import partial

from paraloom.pipeline.stages import nmt

fingerprint, check, is_valid = nmt.fingerprint, nmt.check, nmt.is_valid
make = partial(nmt.make, forward=True)
