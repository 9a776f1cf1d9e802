"""Local copies of input files in object storage.

Libraries open word vectors, phrase pairs and labelled pairs by themselves, so these must be local.
The bitext and the translation model stay where they are: workers read them in pieces, or copy them.
"""

from beam_jobs.io import remote
from beam_jobs.io.storage import MissingError, is_remote
from models.errors import UserError
from models.options import InputPath
from pipeline.config import Config


def localised(config: Config) -> Config:
    """The configuration with remote paths replaced by the paths of local copies.

    Raises:
        UserError: a file is not there, or cannot be copied; names the key.
    """

    def local(key: str, path: str, mark: InputPath) -> str:
        if not mark.copied or not is_remote(path):
            return path
        try:
            return remote.localise(path)
        except MissingError as error:
            raise UserError(f"{key}: {path} is not there") from error

    return config.map_files(local)


def remote_paths(config: Config) -> list[str]:
    """The run folder and the input files of a configuration, those in object storage."""
    return [path for path in (config.run, *config.files().values()) if is_remote(path)]
