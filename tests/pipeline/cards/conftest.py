"""The run of the report's tests."""

from tests.pipeline.report.conftest import made_run  # noqa: F401
