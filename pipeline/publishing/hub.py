"""Sends a release to Hugging Face's Hub."""

from pathlib import Path

from paraloom.models.errors import UserError, in_one_line
from paraloom.pipeline.publishing.files import TEST, TRAIN
from paraloom.pipeline.publishing.release import ABOUT

_PLACES = ("data", "pairs", "triplets")
_SHARDS = [f"{place}/{split}-*-of-*" for place in _PLACES for split in (TRAIN, TEST)]
"""The files that a later release may no longer have."""


def check(repo: str) -> None:
    """Check that there is a token, and the name of a repository, before a release is made."""
    from huggingface_hub import get_token

    if repo.count("/") != 1:
        raise UserError(f"--repo {repo}: is not OWNER/NAME")
    if not get_token():
        raise UserError(
            "--push: there is no token of the Hub here; run `hf auth login`, or set HF_TOKEN"
        )


def push(folder: Path, repo: str) -> str:
    """Send a release to the data set `repo`; a new one is private. Returns its address.

    Files of an earlier release are replaced; other files in the repository stay.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="paraloom")
    with in_one_line(f"--push: {repo} was not sent, or not all of it; the same command goes on"):
        url = api.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        there = set(api.list_repo_files(repo, repo_type="dataset"))
        if ABOUT not in there:
            if there - {".gitattributes", "README.md"}:
                raise UserError(
                    f"--repo {repo}: holds files that `paraloom publish` did not send; name another"
                )
            # Large folders are sent in several commits. This is the first.
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
    return str(url)
