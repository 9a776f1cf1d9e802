"""An emulator of S3: moto's server in a thread of this process, with a bucket `paraloom`."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "s3://paraloom"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}


@contextmanager
def object_store() -> Iterator[list[str]]:
    """Run the server, set its keys in the environment, and yield the server's Beam options."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    before = {name: os.environ.get(name) for name in KEYS}
    os.environ.update(KEYS)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET.removeprefix("s3://"))
        yield ["--s3_endpoint_url", url, "--s3_region_name", "us-east-1"]
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
