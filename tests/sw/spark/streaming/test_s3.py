"""State files in a server of S3: ``pip install 'moto[server]'``, which the environment of the tests does not have."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyarrow import fs

from splitjoin.base.errors import InputError, SnapshotError
from splitjoin.spark.streaming.state_files import StateFiles, check_root

from ....support.spark_streams import rows
from .test_state_files import expected, query, run

pytestmark = pytest.mark.long


@pytest.fixture
def bucket() -> Iterator[str]:
    """The URI of an empty bucket."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    options = f"scheme=http&endpoint_override={host}:{port}&region=us-east-1"
    fs.S3FileSystem(access_key="key", secret_key="word", scheme="http", endpoint_override=f"{host}:{port}",
                    region="us-east-1", allow_bucket_creation=True).create_dir("bucket")
    yield f"s3://key:word@bucket/state?{options}"
    server.stop()


def test_state_is_written_read_regrouped_and_deleted(bucket: str) -> None:
    check_root(bucket, "state")
    join = query(bucket, groups=2, retained=2)
    found = run(join, 20)
    found += run(again := join.restarted(groups=3), 4)
    again.batch -= 1
    found = found[:-1] + run(again.restarted(), 5)
    assert rows(pa.concat_tables(found)) == rows(expected(28))
    files, base = fs.FileSystem.from_uri(bucket)
    left = [info.path for info in files.get_file_info(fs.FileSelector(base, recursive=True)) if info.is_file]
    assert all(path.endswith(".state") for path in left)
    assert min(int(path.split("/")[-2]) for path in left) > 9  # older ones are not needed


def test_errors_name_the_place(bucket: str) -> None:
    with pytest.raises(SnapshotError, match=r"the state of micro-batch 3 is not at s3://"):
        StateFiles(bucket, "query", "join").read(3, 0, 1)
    with pytest.raises(InputError, match="nothing can be written to"):
        check_root(bucket.replace("@bucket/", "@other/"), "state")
