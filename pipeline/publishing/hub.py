"""Sends a release to Hugging Face's Hub."""

from pathlib import Path

from paraloom.models.errors import UserError
from paraloom.pipeline.publishing.files import FOLDERS, TEST, TRAIN
from paraloom.pipeline.publishing.release import ABOUT

_SHARDS = [f"{folder}/{split}-*-of-*.parquet" for folder in FOLDERS for split in (TRAIN, TEST)]
"""The files that a later release may no longer have."""


def check_repo(repo: str) -> None:
    """Check the name of a repository."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo)
        valid = repo.count("/") == 1
    except HFValidationError:
        valid = False
    if not valid:
        raise UserError(
            f"--repo {repo}: is not owner/name, with letters, digits, -, _ and . in both"
        )


def check_token() -> None:
    """Check that there is a token."""
    from huggingface_hub import get_token

    if not get_token():
        raise UserError(
            "--push: there is no token of the Hub here; run `hf auth login`, or set HF_TOKEN"
        )


def push(folder: Path, repo: str) -> str:
    """Send a release to the data set `repo`; a new one is private.

    Files of an earlier release are replaced; other files in the repository stay.

    Returns:
        the address of the data set.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="paraloom")
    try:
        url = api.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        there = set(api.list_repo_files(repo, repo_type="dataset"))
        if ABOUT not in there and there - {".gitattributes", "README.md"}:
            raise UserError(
                f"--repo {repo}: holds files that `paraloom publish` did not send; name another one"
            )
        if ABOUT not in there:  # large folders are sent in several commits, this is the first
            api.upload_file(
                path_or_fileobj=folder / ABOUT,
                path_in_repo=ABOUT,
                repo_id=repo,
                repo_type="dataset",
            )
        api.upload_folder(
            folder_path=folder,
            repo_id=repo,
            repo_type="dataset",
            commit_message="Release made with Paraloom",
            delete_patterns=_SHARDS,
        )
    except UserError:
        raise
    except Exception as error:  # the library and its HTTP client have types of their own
        raise UserError(f"--push: {repo} {_why(error)}") from error
    return str(url)


def _why(error: Exception) -> str:
    import huggingface_hub.constants as constants

    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401:
        return "is refused, the Hub does not know the token; run `hf auth login`"
    if status == 403:
        return "is refused; the token must be one that may write to it"
    text = str(error).partition("For more information")[0]
    reason = " ".join(text.split())[:200] or type(error).__name__
    if constants.HF_HUB_OFFLINE:
        reason = "HF_HUB_OFFLINE is set"
    return f"was not sent, or not all of it ({reason}); the same command goes on where it was"
