"""Options that Beam would ignore."""

import pytest

from paraloom.beam_jobs.runners.launch import parse_options
from paraloom.models.errors import UserError

FLINK = ["--runner", "FlinkRunner", "--flink_master", "host:8081"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nope"], "--nope: no such option"),
        (["--direct_num_worker=3"], "--direct_num_worker: .* did you mean --direct_num_workers"),
        (["--s3_secret_acess_key", "KEY"], "--s3_secret_acess_key: .* --s3_secret_access_key"),
        (["positional"], "positional: belongs to no option"),
        (["--direct_num_workers", "2", "3"], "3: belongs to no option"),
        (["--runner", "DataflowRunner", "--machin_type", "n1"], "--machin_type: .* --machine_type"),
    ],
)
def test_an_unknown_option_is_one_line_without_its_value(
    arguments: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=f"^Beam options: {message}") as error:
        parse_options(arguments)
    assert "KEY" not in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--direct_num_workers", "2", "--experiments=a", "--experiments", "b"],
        ["--s3_region_name", "eu-central-1", "--s3_disable_ssl"],
        ["--runner=DataflowRunner", "--project", "p", "--sdk_container_image=i", "--no_auth"],
        [*FLINK, "--environment_type", "EXTERNAL", "--environment_config", "localhost:50000"],
        [*FLINK, "--checkpointing_interval", "10000", "--object_reuse"],  # the job server's
    ],
)
def test_options_that_beam_or_its_job_server_knows(arguments: list[str]) -> None:
    parse_options(arguments)
