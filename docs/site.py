"""What `mkdocs` needs besides the pages: README as the first page, and no links into the code."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
IN_CODE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")


def on_files(files: Files, config: Any) -> Files:
    """Add README as the first page, with links as if README were in docs/."""
    text = (ROOT / "README.md").read_text("utf-8")
    text = re.sub(r"\]\((?!docs/|https?:|#)([^)]*)\)", r"](../\1)", text)
    text = re.sub(r'(\]\(|src(?:set)?=")docs/', r"\1", text)
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links out of docs/ by their texts, because the site contains no code."""
    return IN_CODE.sub(r"\1", markdown)
