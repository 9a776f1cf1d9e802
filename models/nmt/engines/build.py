"""The engine that the configuration names."""

import math

from paraloom.models.cpu import cores
from paraloom.models.errors import UserError, in_one_line
from paraloom.models.nmt.engines.base import Engine
from paraloom.models.nmt.families.base import NmtModel
from paraloom.models.nmt.families.fairseq import FairseqModel
from paraloom.models.nmt.families.pretrained import PretrainedModel
from paraloom.models.nmt.options import NmtOptions


def build_engine(model: NmtModel, options: NmtOptions, threads: int | None = None) -> Engine:
    """Load the model in the configured engine, on `threads` CPU threads (None: all cores)."""
    threads = threads or cores()
    engine: Engine
    check_family(model, options)
    if options.engine == "ctranslate2":
        from paraloom.models.nmt.engines.ctranslate2 import CTranslate2Engine

        engine = CTranslate2Engine(model, options, threads)
    elif isinstance(model, FairseqModel):
        from paraloom.models.nmt.engines.fairseq import FairseqEngine

        engine = FairseqEngine(model, options, threads)
    else:
        from paraloom.models.nmt.engines.transformers import TransformersEngine

        assert isinstance(model, PretrainedModel)
        engine = TransformersEngine(model.torch_model(), model.positions, options, threads)
    check_engine(engine, model, options)
    return engine


def check_family(model: NmtModel, options: NmtOptions) -> None:
    """Check that the configured engine takes models of this family."""
    if options.engine not in ("ctranslate2", model.reference):
        raise UserError(
            f"nmt.engine: {options.engine} does not take a model of {model.family} "
            f"({model.path}); choose ctranslate2"
        )


def check_engine(engine: Engine, model: NmtModel, options: NmtOptions) -> None:
    """Translate one subword, to distinguish a broken engine or model from a sentence that fails."""
    with in_one_line(f"{model.path}: engine {options.engine} does not work"):
        (found,) = engine.submit([["▁a"]])()
    if not any(math.isfinite(hypothesis.score) for hypothesis in found):
        score = found[0].score if found else "missing"
        other = "" if options.compute_type == "float32" else ", or choose nmt.compute_type float32"
        raise UserError(
            f"{model.path}: the model gives a translation no probability (its score is {score}); "
            f"get the model again{other}"
        )
