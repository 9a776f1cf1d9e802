"""`paraloom sample`: copies the sample and its configuration to a folder."""

import json
import shutil
from pathlib import Path
from shlex import quote
from typing import Annotated

from paraloom.models.errors import UserError
from paraloom.models.files import atomic_folder
from paraloom.models.printing import show
from paraloom.pipeline.commands.options import argument
from paraloom.pipeline.config.read import SAMPLE


def command(folder: Annotated[Path, argument("FOLDER", "The folder to create.")]) -> None:
    """The sample has Czech–English bitext, phrase pairs, labelled pairs, and a configuration.

    Use this configuration as a template for your own configuration.
    """
    if folder.exists():
        raise UserError(f"{folder}: already exists; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as work:
        for file in filter(Path.is_file, SAMPLE.rglob("*")):
            copy = work / file.relative_to(SAMPLE)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)  # without the permissions, which may forbid writing
        config = work / "sample.yaml"
        _, text = config.read_text("utf-8").split("\n", 1)  # the first line is for editors
        quoted = json.dumps(str(folder), ensure_ascii=False)[1:-1]
        config.write_text(text.replace("${PARALOOM_SAMPLE}", quoted), "utf-8")
    show(f"paraloom corpus --config {quote(str(folder / 'sample.yaml'))}")
