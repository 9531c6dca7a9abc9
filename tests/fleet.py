"""What the tests of remote inputs and clusters share: real servers on loopback, started as processes or threads and stopped."""

from __future__ import annotations

import gzip
import os
import re
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

BIN = Path(sys.executable).parent
LINE = (
    '2026-11-30T08:12:44Z ERROR call {number} failed: {{"v": "0.1", "ok": false, "operation": "ovstorage_read", "operation_id": "op-{number}", '
    '"error": {{"code": "NotFound", "message": "m", "retryable": false}}}}\n'
)
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


def log(megabytes: float) -> bytes:
    """A log in which every 200th line is a failure."""
    parts = []
    size = number = 0
    noise = "2026-11-30T08:12:43Z INFO all is well with request 00000000\n" * 199
    while size < megabytes * (1 << 20):
        parts.append(LINE.format(number=number) + noise)
        size += len(parts[-1])
        number += 1
    return "".join(parts).encode()


@contextmanager
def object_store(objects: dict[str, bytes]) -> Iterator[dict[str, str]]:
    """An S3 server with these objects in the bucket ``logs``; gives the environment in which tools find it."""
    moto = pytest.importorskip("moto.server", reason="no S3 server is installed (moto)")
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    env = {**CREDENTIALS, "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": f"http://{host}:{port}"}
    try:
        session = boto3.session.Session(*CREDENTIALS.values())
        client = session.client("s3", region_name="us-east-1", endpoint_url=env["AWS_ENDPOINT_URL"])
        reset(env)  # what a server has lives as long as the process
        client.create_bucket(Bucket="logs")
        for key, body in objects.items():
            client.put_object(Bucket="logs", Key=key, Body=body)
        yield env
    finally:
        reset(env)
        server.stop()


def reset(env: dict[str, str]) -> None:
    """Empty the S3 server."""
    urlopen(Request(f"{env['AWS_ENDPOINT_URL']}/moto-api/reset", method="POST"), timeout=30).close()  # noqa: S310 - our own server


@contextmanager
def web_server(data: bytes, *, ranges: bool, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
    """A web server that gives some bytes under every path, in parts or only whole; gives its address.

    With a certificate and its key it speaks TLS.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            if "gone" in self.path or "status-" in self.path:
                self.send_error(int(self.path.partition("status-")[2][:3] or 404))
                return
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")) if ranges else None
            part = data[int(asked[1]) : int(asked[2] or len(data)) + 1] if asked else data
            self.send_response(206 if asked else 200)
            if asked:
                self.send_header("Content-Range", f"bytes {asked[1]}-{int(asked[1]) + len(part) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            if body:
                try:
                    self.wfile.write(part)
                except OSError:  # whoever asked has seen enough
                    self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def make_certificate(key: Path, certificate: Path) -> None:
    """A certificate of this machine's loopback address, signed by itself."""
    x509 = pytest.importorskip("cryptography.x509", reason="nothing makes certificates (cryptography)")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


@contextmanager
def cluster(folder: Path, workers: int = 2, threads: int = 1, env: dict[str, str] | None = None, worker_env: dict[str, str] | None = None) -> Iterator[Path]:
    """A scheduler and workers, started from the command line; gives the scheduler's file."""
    pytest.importorskip("distributed", reason="distributed is not installed")
    file = folder / "scheduler.json"
    around = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0", **(env or {})}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    command = [str(BIN / "dask"), "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    started = [subprocess.Popen(command, env=around, **quiet)]  # type: ignore[call-overload]
    try:
        until(file.is_file)
        for _ in range(workers):
            command = [str(BIN / "dask"), "worker", "--scheduler-file", str(file), "--nthreads", str(threads), "--no-dashboard"]
            started.append(subprocess.Popen(command, env={**around, **(worker_env or {})}, **quiet))  # type: ignore[call-overload]
        yield file
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def until(holds: object, seconds: float = 60) -> None:
    """Wait until something holds, for a bounded time."""
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def compressed(data: bytes) -> bytes:
    """The same, as gzip."""
    return gzip.compress(data, 1)
