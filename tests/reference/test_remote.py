"""Files behind a URI: a real S3 protocol server on loopback."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
import time
import urllib.parse

import numpy as np
import pytest
from pyarrow import fs

import beeline
from beeline.data.files.finding import detect_format, find_files, open_stream
from beeline.exceptions import SourceError

ROWS = b"".join(b"%d 1:%d 3:0.5\n" % (1 - 2 * (i % 2), i) for i in range(5000))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, server):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert server.poll() is None, "the server ended"
        time.sleep(0.1)
    raise AssertionError("the server did not come up")


@pytest.fixture(scope="module")
def bucket():
    """(file system, a function from a path to its URI) of a bucket with some files."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(port, server)
        options = {"scheme": "http", "endpoint_override": f"127.0.0.1:{port}", "region": "us-east-1"}
        remote = fs.S3FileSystem(access_key="a", secret_key="b", allow_bucket_creation=True, **options)
        remote.create_dir("rows")
        for path, content in {"rows/day/1.svm.gz": gzip.compress(ROWS), "rows/day/2.svm": ROWS}.items():
            with remote.open_output_stream(path, compression=None) as out:
                out.write(content)
        query = urllib.parse.urlencode(options)
        yield lambda path: f"s3://a:b@{path}?{query}"
    finally:
        server.terminate()
        server.wait(10)


def test_a_remote_folder_is_found_recognised_and_opened(bucket):
    files = find_files(bucket("rows/day"))
    assert [(f.name, f.compression) for f in files] == [
        ("s3://rows/day/1.svm.gz", "gzip"),
        ("s3://rows/day/2.svm", "none"),
    ]
    assert {detect_format(f) for f in files} == {"libsvm"}
    stream = open_stream(files[0])
    assert b"".join(iter(lambda: stream.read(10_000), b"")) == ROWS


def test_remote_rows_equal_local_rows(bucket, tmp_path):
    (tmp_path / "rows.svm").write_bytes(ROWS)
    local = beeline.read(tmp_path / "rows.svm")
    for path in ("rows/day/1.svm.gz", "rows/day/2.svm"):
        remote = beeline.read(bucket(path))
        np.testing.assert_array_equal(remote.X.toarray(), local.X.toarray())
        np.testing.assert_array_equal(remote.labels, local.labels)
    assert beeline.convert(bucket("rows/day"), tmp_path / "store").n_rows == 10_000


def test_a_missing_remote_file_is_named_without_its_credentials(bucket):
    with pytest.raises(SourceError, match="no such file") as error:
        find_files(bucket("rows/nothing"))
    assert "a:b@" not in str(error.value)
