"""Sends a release to Hugging Face's Hub."""

from pathlib import Path

from paraloom.models.errors import UserError, in_one_line
from paraloom.pipeline.release.files import TEST, TRAIN
from paraloom.pipeline.release.release import ABOUT

_SHARDS = [f"{at}/{split}-*" for at in ("data", "pairs", "triplets") for split in (TRAIN, TEST)]
"""The files that a later release may no longer have."""


def push(folder: Path, repo: str) -> str:
    """Send a release to the data set `repo`; a new one is private. Returns its address.

    Files of an earlier release are replaced; other files in the repository stay.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="paraloom")
    with in_one_line(f"--push: {repo} was not sent, or not all of it; the same command goes on"):
        url = api.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        there = set(api.list_repo_files(repo, repo_type="dataset"))
        if ABOUT not in there and there - {".gitattributes", "README.md"}:
            raise UserError(
                f"--repo {repo}: holds files that `paraloom publish` did not send; name another"
            )
        api.upload_folder(
            folder_path=folder,
            repo_id=repo,
            repo_type="dataset",
            commit_message="Release made with Paraloom",
            delete_patterns=_SHARDS,
        )
    return str(url)
