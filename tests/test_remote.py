"""Inputs that a URL names: S3 and the web, from real servers on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run
from fleet import compressed, log, make_certificate, object_store, web_server

from errtriage import remote

SMALL = log(0.2)
LARGE = log(20)
OBJECTS = {
    "app/a.log": LARGE,
    "app/b.log.gz": compressed(SMALL),
    "app/.hidden.log": SMALL,
    "app/c.bin": b"x",
    "wide.log": b"\xff\xfe" + SMALL.decode().encode("utf-16-le"),
}


@pytest.fixture(scope="module")
def store() -> Iterator[dict[str, str]]:
    with object_store(OBJECTS) as env:
        yield env


def scanned(run: Run, *args: str, env: dict[str, str] | None = None) -> dict[str, object]:
    done = run("scan", "-f", "json", *args, env=env)
    assert done.stderr == b""
    report: dict[str, object] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_object_is_scanned_as_a_file_is(run: Run, store: dict[str, str], tmp_path: Path, workers: str) -> None:
    (tmp_path / "a.log").write_bytes(LARGE)
    there = run("scan", "-f", "json", "--workers", workers, "s3://logs/app/a.log", env=store).stdout
    here = run("scan", "-f", "json", "a.log", cwd=tmp_path).stdout
    assert there.replace(b"s3://logs/app/a.log", b"a.log") == here


def test_folders_and_globs_are_expanded(run: Run, store: dict[str, str]) -> None:
    folder = scanned(run, "s3://logs/app", env=store)
    assert (folder["files"], folder["bytes"]) == (2, len(LARGE) + len(SMALL))
    both = scanned(run, "s3://logs/a*", env=store)
    assert (both["files"], both["bytes"]) == (2, len(LARGE) + len(SMALL))
    matched = scanned(run, "s3://logs/app/*.log.gz", "s3://logs/w?de.log", env=store)
    assert (matched["files"], matched["payloads"]) == (2, 2 * SMALL.count(b"ERROR"))


def test_explain_and_lint_read_them_too(run: Run, store: dict[str, str]) -> None:
    done = run("explain", "-f", "json", "s3://logs/app/b.log.gz", env=store)
    assert done.stdout.count(b"\n") == SMALL.count(b"ERROR")
    assert b"s3://logs/app/b.log.gz" in done.stdout
    assert run("lint", "s3://logs/app/b.log.gz", env=store).stdout == b"1 file, 18 payloads: no findings.\n"


WRONG = [
    ("s3://logs/gone.log", "there is no such object"),
    ("s3://logs/*.gone", "nothing matches it"),
    ("s3://nowhere/a.log", "there is no such object"),
    ("nobody://x/y", "Protocol not known: nobody"),
    ("s3://logs/a::b", "there is no such object"),
    ("S3://logs/gone.log", "there is no such object"),
]


@pytest.mark.parametrize(("url", "reason"), WRONG, ids=[url for url, _ in WRONG])
def test_what_cannot_be_read_is_said(run: Run, store: dict[str, str], url: str, reason: str) -> None:
    done = run("scan", "-f", "json", url, env=store)
    assert done.returncode == 2
    assert json.loads(done.stdout)["skipped"] == [{"file": url, "reason": reason}]


@pytest.mark.parametrize("ranges", [True, False], ids=["in parts", "whole"])
@pytest.mark.parametrize("data", [LARGE, compressed(SMALL), b"", b"x"], ids=["large", "compressed", "empty", "one byte"])
def test_the_web_is_read_in_parts_where_it_gives_them(run: Run, tmp_path: Path, data: bytes, ranges: bool) -> None:
    (tmp_path / "a.log").write_bytes(data)
    here = run("scan", "-f", "json", "a.log", cwd=tmp_path).stdout
    with web_server(data, ranges=ranges) as address:
        there = run("scan", "-f", "json", "--workers", "2", f"{address}/a.log?x=[1]", env={"NO_PROXY": "*"})
    assert there.stderr == b""
    assert there.stdout.replace(f"{address}/a.log?x=[1]".encode(), b"a.log") == here


def test_a_name_shows_no_password_and_no_signature(run: Run) -> None:
    with web_server(SMALL, ranges=True) as address:
        url = address.replace("//", "//me:s3cr3t@") + "/a.log?X-Amz-Signature=c0ffee"
        done = run("scan", url)
        gone = run("scan", f"{address}/gone?token=c0ffee")
        nobody = run("scan", "http://127.0.0.1:9/a.log")
    assert b"s3cr3t" not in done.stdout + done.stderr
    assert b"c0ffee" not in done.stdout + done.stderr + gone.stdout + gone.stderr
    assert b"there is no such object" in gone.stderr
    assert b"Cannot connect to host 127.0.0.1:9" in nobody.stderr


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 503])
def test_an_answer_of_a_server_is_said(run: Run, status: int) -> None:
    with web_server(SMALL, ranges=True) as address:
        for command in ("scan", "explain"):
            done = run(command, f"{address.replace('//', '//me:s3cr3t@')}/status-{status}?X-Amz-Signature=c0ffee")
            said = {401: b"access was refused", 403: b"access was refused", 404: b"there is no such object", 410: b"there is no such object"}
            assert done.returncode == 2
            assert said.get(status, b"the server answers with status %d" % status) in done.stderr
            assert b"s3cr3t" not in done.stderr
            assert b"c0ffee" not in done.stderr
        sarif = run("lint", "-f", "sarif", f"{address.replace('//', '//me:s3cr3t@')}/a.log?X-Amz-Signature=c0ffee")
        assert b"s3cr3t" not in sarif.stdout + sarif.stderr
        assert b"c0ffee" not in sarif.stdout + sarif.stderr


def test_a_file_may_be_called_like_a_url(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x:").mkdir()
    (tmp_path / "x:" / "z.log").write_bytes(SMALL)
    for name in ("./x://z.log", f"{tmp_path}/x://z.log"):
        assert json.loads(run("scan", "-f", "json", name, cwd=tmp_path).stdout)["payloads"] == SMALL.count(b"ERROR")


def test_every_other_protocol_comes_through_the_same_door(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    fsspec.filesystem("memory").pipe("/logs/a.log", SMALL)
    assert remote.read("memory://logs/a.log") == SMALL
    assert remote.info("memory://logs/a.log").size == len(SMALL)
    (tmp_path / "a.log").write_bytes(SMALL)
    assert remote.read(f"file://{tmp_path}/a.log") == SMALL


def test_an_object_that_changes_while_it_is_read_is_said() -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    memory.pipe("/logs/b.log", b"0123456789")
    before = remote.info("memory://logs/b.log").identity
    assert remote.read_range("memory://logs/b.log", 2, 4, before) == b"23"
    memory.pipe("/logs/b.log", b"0123")
    for start, end in ((0, 2), (2, 8)):
        with pytest.raises(OSError, match="changed while") as caught:
            remote.read_range("memory://logs/b.log", start, end, before)
        assert caught.value.strerror == "it changed while it was read; scan it again"


def test_a_url_cannot_be_followed(run: Run, store: dict[str, str]) -> None:
    done = run("scan", "--follow", "s3://logs/app/a.log", env=store)
    assert (done.returncode, done.stderr) == (
        2,
        b"errtriage: s3://logs/app/a.log cannot be followed: --follow reads files of this machine. Scan it without --follow.\n",
    )


@pytest.mark.parametrize(
    ("missing", "args", "said"),
    [
        ("fsspec", ["scan", "s3://a/b"], "s3:// needs more than is installed (fsspec); pip install 'errtriage[remote]' brings S3 and HTTP."),
        ("s3fs", ["scan", "s3://a/b"], "pip install 'errtriage[remote]' brings S3 and HTTP."),
        ("distributed", ["scan", "--cluster", "tcp://127.0.0.1:1", "-"], "--cluster needs the extra for clusters. Install it: pip install 'errtriage[dask]'."),
    ],
)
def test_without_the_extra_the_option_says_what_to_install(missing: str, args: list[str], said: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; sys.argv = {['errtriage', *args]!r}; from errtriage.cli import app; app()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, input="")
    assert done.returncode == 2
    assert said in done.stderr
    assert "payloads" not in done.stdout


def test_what_is_on_this_machine_needs_neither_extra(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(SMALL)
    code = "import sys; sys.argv = ['errtriage', 'scan', sys.argv[1]]\nfrom errtriage.cli import app\ntry: app()\nexcept SystemExit: pass\nprint('loaded', *sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.log")], capture_output=True, text=True, check=True).stdout.rpartition("loaded")[2]
    assert not {"fsspec", "distributed", "dask", "errtriage.remote", "errtriage.cluster"} & set(loaded.split())


def test_an_object_of_a_bucket_that_changes_is_said(store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.put_object(Bucket="logs", Key="other/x.log", Body=b"0123456789")
    before = remote.info("s3://logs/other/x.log").identity
    assert remote.read_range("s3://logs/other/x.log", 2, 4, before) == b"23"
    client.put_object(Bucket="logs", Key="other/x.log", Body=b"9876543210")
    with pytest.raises(OSError, match="changed while"):
        remote.read_range("s3://logs/other/x.log", 2, 4, before)


def test_a_server_is_trusted_by_its_certificate(run: Run, tmp_path: Path) -> None:
    """https:// with an authority that the machine knows, and with one that it does not know."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make_certificate(key, certificate)
    with web_server(SMALL, ranges=True, certificate=(certificate, key)) as address:
        assert address.startswith("https://127.0.0.1:")
        known = run("scan", "-f", "json", f"{address}/a.log", env={"SSL_CERT_FILE": str(certificate)})
        unknown = run("scan", "-f", "json", f"{address}/a.log")
    assert json.loads(known.stdout)["payloads"] == SMALL.count(b"ERROR")
    assert (unknown.returncode, json.loads(unknown.stdout)["payloads"]) == (2, 0)
    assert b"CERTIFICATE_VERIFY_FAILED" in unknown.stderr
