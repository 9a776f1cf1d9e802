"""Fuzzers: every input that may come from others ends well or in one line, never in a traceback."""

import os


def offline() -> None:
    """No case asks the network for what a damaged name names."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "AWS_EC2_METADATA_DISABLED": "true"}
