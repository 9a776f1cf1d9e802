"""The licence that a model card names."""

from pathlib import Path

import yaml


def license_of(folder: Path) -> str | None:
    """The `license` in the metadata of a folder's README.md; None if it says none."""
    try:
        text = (folder / "README.md").read_text(encoding="utf-8")
        _, metadata, _ = text.split("---\n", 2)
        value = yaml.safe_load(metadata).get("license")
    except (OSError, ValueError, AttributeError, yaml.YAMLError):
        return None
    return ", ".join(map(str, value if isinstance(value, list) else [value])) if value else None
