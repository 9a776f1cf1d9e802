"""`paraloom doctor`: checks libraries, engines and devices, or describes a translation model."""

from collections.abc import Callable
from typing import Annotated, Literal

import typer
from pydantic import BaseModel
from rich.table import Table
from rich.text import Text

from paraloom.models.cpu import cores
from paraloom.models.errors import missing_extra
from paraloom.pipeline.commands.console import console
from paraloom.pipeline.commands.options import JsonFile, check_unused, option, write_json
from paraloom.pipeline.run.folder import versions

_SENTENCES = 256  # number of sentences that measure the speed of a model
Finding = tuple[bool, str]  # whether the check succeeds, and its result or a remedy
_COLORS = {"ok": "green", "fails": "red", "no": "yellow"}


class Check(BaseModel):
    """The result of one check. `no` means that an optional component is missing or unusable."""

    name: str
    state: Literal["ok", "fails", "no"]
    found: str


class Doctor(BaseModel):
    """The JSON form of `paraloom doctor`."""

    sound: bool  # whether no check fails
    checks: list[Check]


def command(
    context: typer.Context,
    model: Annotated[str | None, option("DIR", "Describe and test this translation model.")] = None,
    source_language: Annotated[str | None, option("CODE", "Source language of --model.")] = None,
    target_language: Annotated[str | None, option("CODE", "Target language of --model.")] = None,
    sentence: Annotated[
        str, option("TEXT", "Sentence that --model translates.")
    ] = "A dog runs through the snow.",
    json: JsonFile = None,
) -> None:
    """Print a table of checks. The exit code is 2 if an installed engine fails."""
    checks: list[tuple[str, bool, Callable[[], Finding] | str]] = [
        ("libraries", False, _libraries),
        ("engine ctranslate2, CPU", True, _ctranslate2),
        ("engine fairseq", True, _fairseq),
        ("GPU, torch", False, _torch_gpu),
        ("GPU, ctranslate2", False, _ctranslate2_gpu),
    ]
    if model is None:
        check_unused(context, "--model", "source_language", "target_language", "sentence")
    else:
        described = _model(model, source_language, target_language, sentence)
        checks = [(name, True, text) for name, text in described.items()]
    table = Table("check", "", "found", title="paraloom doctor")
    result = Doctor(sound=True, checks=[])
    for name, required, check in checks:
        try:
            works, text = (True, check) if isinstance(check, str) else check()
        except Exception as error:  # imports and drivers may raise any error
            first, *_ = str(error).splitlines() or [""]
            works, text = False, f"{type(error).__name__}: {first}".removesuffix(": ")
            if extra := missing_extra(text):
                text, required = extra, False
        made = Check(name=name, state="ok" if works else "fails" if required else "no", found=text)
        table.add_row(name, Text(made.state, _COLORS[made.state]), text)
        result.checks.append(made)
        result.sound = result.sound and made.state != "fails"
    console().print(table)
    write_json(json, result)
    if not result.sound:
        raise typer.Exit(2)


def _model(name: str, source: str | None, target: str | None, sentence: str) -> dict[str, str]:
    import ctranslate2

    from paraloom.models.hub import fetch
    from paraloom.models.nmt import NmtOptions, Translator
    from paraloom.models.nmt.families import open_model
    from paraloom.models.nmt.families.base import Languages

    languages = Languages(source, target, "--source-language", "--target-language")
    folder = fetch(name, "--model")
    model = open_model(folder, languages)
    translator = Translator(folder, NmtOptions(), languages=languages)
    (said,) = translator.translate([sentence])[0].to_pylist()
    _, counters = translator.translate([sentence] * _SENTENCES)
    tags = " ".join([*model.layout.source(["..."]), "->", *model.layout.target_prefix, "..."])
    types = sorted(ctranslate2.get_supported_compute_types(translator.device))
    size = sum(file.stat().st_size for file in model.path.rglob("*") if file.is_file())
    return {
        "family": model.family,
        "languages": f"{' into '.join(filter(None, model.languages)) or 'not named'}; {tags}",
        "tokeniser": model.subwords().name,
        "size": f"{size / 1e6:,.1f} MB, {model.converted().vocabulary:,} target subwords",
        "number types": f"{translator.compute_type}; {translator.device} has {', '.join(types)}",
        "sentence": f"{sentence} -> {said['translation'] or said['reason']}",
        "speed": f"{counters.sentences / counters.seconds:,.0f} sentences/s at beam 12",
    }


def _libraries() -> Finding:
    found = versions()
    missing = [name for name, version in found.items() if version == "not installed"]
    if missing:
        return False, f"{', '.join(missing)} missing: pip install 'paraloom[all]'"
    return True, ", ".join(f"{name} {version}" for name, version in found.items())


def _ctranslate2() -> Finding:
    import ctranslate2

    types = sorted(ctranslate2.get_supported_compute_types("cpu"))
    return "float32" in types, f"{cores()} cores; {', '.join(types)}"


def _fairseq() -> Finding:
    import fairseq.models.transformer
    import torch

    return True, f"fairseq {fairseq.__version__}, {torch.get_num_threads()} threads"


def _torch_gpu() -> Finding:
    import torch

    if not torch.cuda.is_available():
        return False, "no CUDA device for torch, which therefore uses the CPU"
    return True, f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"


def _ctranslate2_gpu() -> Finding:
    from paraloom.models.nmt import gpu

    if not (devices := gpu.devices()):
        return False, "none"
    if not gpu.load_cublas():
        return False, "a GPU, but no CUDA 12 cuBLAS: pip install nvidia-cublas-cu12"
    return True, f"{len(devices)} device(s)"
