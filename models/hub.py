"""Models and data sets on the Hugging Face Hub, named `owner/name` or `owner/name@revision`."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from paraloom.models.errors import UserError, in_one_line, one_line
from paraloom.models.files import CARD, atomic_file, looked_up, user_cache
from paraloom.models.structured import parse_json, read_json, settings_in

_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?")
_FILES = re.compile(r"([\w-]+/)?[^/]+\.(json|model|spm|txt)|README\.md|model\.bin")
_WEIGHTS = (r"model(-\d+-of-\d+)?\.safetensors", r"pytorch_model(-\d+-of-\d+)?\.bin")

# The only torch objects that settings may name, because libraries call the named objects.
_TORCH = re.compile(r"torch\.(nn\.(modules\.\w+\.)?[A-Z]\w*|(b?float|q?u?int)\d\w*)")


def is_hub_name(model: str) -> bool:
    """Return whether `model` has the form of a Hub name and is not an existing path.

    >>> is_hub_name("Helsinki-NLP/opus-mt-cs-en@main"), is_hub_name("/models/cs-en")
    (True, False)
    """
    return _NAME.fullmatch(model) is not None and not Path(model).exists()


def fetch(model: str, key: str = "nmt.model", needs: str = "") -> Path:
    """Return the folder of a model. A model on the Hub is downloaded if it is not cached.

    A cached model without the file `needs` counts as incomplete.
    """
    if not is_hub_name(model):
        return Path(model)
    if (folder := cached(model)) and (folder / needs).exists():
        return folder
    import huggingface_hub

    repo, revision = _parts(model)
    with _answering(model, key, "model"):
        info = huggingface_hub.HfApi().model_info(repo, revision=revision)
        chosen = needed([file.rfilename for file in info.siblings or []])
        # Pass the name of a branch, not its commit, so that the cache records the branch's commit.
        return Path(
            huggingface_hub.snapshot_download(repo, revision=revision, allow_patterns=chosen)
        )


def cached(model: str) -> Path | None:
    """Return the folder of a model in the Hub's cache, or None if needed files are missing there.

    If the cache does not list the files of the model, only the weights are checked.
    """
    import huggingface_hub

    repo, revision = _parts(model)
    chosen = None
    with suppress(Exception):  # there is no list, or an older library does not store lists
        listed = huggingface_hub.get_cached_repo_tree(repo, revision=revision)
        chosen = needed([file.path for file in listed])
    with suppress(OSError, ValueError):
        found = huggingface_hub.snapshot_download(
            repo, revision=revision, local_files_only=True, allow_patterns=chosen
        )
        folder = Path(found)
        weights = _weights([path.relative_to(folder).as_posix() for path in folder.rglob("*")])
        weights += [file.name for file in folder.glob("model.bin")]  # CTranslate2's weights
        parts = Counter(re.findall(r"(\S+)-\d+-of-(\d+)\.", " ".join(weights)))
        if weights and all(int(total) == count for (_, total), count in parts.items()):
            return folder
    return None


def revision(folder: Path) -> str | None:
    """Return the commit of a snapshot in the Hub's cache, or None for other folders."""
    return folder.name if folder.parent.name == "snapshots" else None


def pinned(model: str) -> str:
    """Set the revision of a Hub name to the downloaded commit. Return other names unchanged."""
    if not is_hub_name(model):
        return model
    return f"{model.partition('@')[0]}@{revision(fetch(model))}"


def check_settings(file: Path, values: Any) -> None:
    """Raise an error if a setting in a file, at any depth, makes a library run third-party code."""
    for key, value in settings_in(values):
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text.startswith("torch.") and not _TORCH.fullmatch(text):
                raise brings_code(file, text)
        if "_implementation" in key and "/" in json.dumps(value):
            raise brings_code(file, str(value))


def check_index(file: Path) -> None:
    """Raise an error if a weight index (`*.index.json`) names a file in another folder."""
    index = read_json(file, dict[str, Any], "a list of files with weights")
    files = index.get("weight_map")
    for name in files.values() if isinstance(files, dict) else ():
        if not isinstance(name, str) or Path(name).name != name:
            raise UserError(f"{file}: names a file outside its folder ({one_line(name)})")


def brings_code(file: Path, name: str) -> UserError:
    """Return the error for a file that names third-party code."""
    return UserError(
        f"{file}: the model cannot be loaded: it needs third-party code "
        f"({one_line(name)}), which is not run"
    )


def fetch_dataset(
    name: str, choose: Callable[[list[str], Path], list[str]], asked: Sequence[Any], key: str
) -> tuple[Path, list[str]]:
    """Fetch files of a data set. Return the folder in the Hub's cache, and the names of the files.

    A complete download is reused without access to the Hub. The data set's code is not run.

    Args:
        choose: selects files, given all file names and the path of the card, which may be missing.
        asked: values on which `choose` depends. With other values, files are selected again.
        key: configuration key that errors name.
    """
    import huggingface_hub

    text = json.dumps([name, *asked])
    record = user_cache() / "datasets" / hashlib.sha256(text.encode()).hexdigest()
    with suppress(OSError, ValueError):
        known, chosen = parse_json(record.read_bytes(), tuple[Path, list[str]])
        if chosen and all((known / file).exists() for file in chosen):
            return known, chosen
    repo, wanted = _parts(name)
    with _answering(name, key, "data set"):
        names: list[str] = []
        # If a data set has no Parquet files, the Hub has a Parquet copy on another branch.
        for revision in [wanted] if wanted else [None, "refs/convert/parquet"]:
            if not any(file.endswith(".parquet") for file in names):
                info = huggingface_hub.HfApi().dataset_info(repo, revision=revision)
                names = [file.rfilename for file in info.siblings or []]
        which = {"repo_type": "dataset", "revision": info.sha}
        download = partial(huggingface_hub.snapshot_download, repo, **which)
        chosen = choose(names, Path(download(allow_patterns=[CARD]), CARD))
        folder = download(allow_patterns=chosen)
    with suppress(UserError), atomic_file(record) as temporary:  # the cache may be read-only
        temporary.write_text(json.dumps([folder, chosen]), "utf-8")
    return Path(folder), chosen


def _parts(name: str) -> tuple[str, str | None]:
    match = _NAME.fullmatch(name)
    assert match
    return match[1], match[2]


def _answering(name: str, key: str, kind: str) -> AbstractContextManager[None]:
    """Convert errors of the Hub or the network to a UserError with advice."""
    repo, _, revision = name.partition("@")
    version = f" --revision {revision}" if revision else ""
    version += " --repo-type dataset" if kind != "model" else ""
    return in_one_line(
        f"{key}: {name} is not a folder{looked_up(name)}, and cannot be fetched from the Hub; a "
        f"private or gated {kind} needs `hf auth login`; without a network, set {key} to a folder "
        f"that was fetched elsewhere with `hf download {repo}{version} --local-dir DIR`"
    )


def needed(names: Sequence[str]) -> list[str]:
    """Select the model card and the files that are needed to load a model.

    >>> needed(["config.json", "onnx/model.onnx", "model.safetensors", "pytorch_model.bin"])
    ['config.json', 'model.safetensors']
    """
    return [name for name in names if _FILES.fullmatch(name)] + _weights(names)


def _weights(names: Sequence[str]) -> list[str]:
    """Select the weight files in a model's folder and in folders of modules, such as `2_Dense`.

    From each folder, select only the first format in `_WEIGHTS` that the folder contains.

    >>> _weights(["pytorch_model.bin", "model.safetensors", "2_Dense/pytorch_model.bin"])
    ['model.safetensors', '2_Dense/pytorch_model.bin']
    """
    folders: dict[str, list[str]] = {}
    for name in names:
        folder, _, file = name.rpartition("/")
        if re.fullmatch(r"(\d+_\w+)?", folder):
            folders.setdefault(folder, []).append(file)
    found = []
    for folder, files in folders.items():
        kinds = ([f for f in files if re.fullmatch(kind, f)] for kind in _WEIGHTS)
        found += [f"{folder}/{file}".lstrip("/") for file in next(filter(None, kinds), [])]
    return found
