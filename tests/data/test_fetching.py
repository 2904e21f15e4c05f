"""Downloads: what breaks is gone on with, what is wrong is not kept, one line says what to do."""

import hashlib
import http.server
import io
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections import namedtuple

import pytest

from glassformer.data.catalog import archives, fetching, transfer
from glassformer.data.catalog.archives import members, unpack, unpacked
from glassformer.data.catalog.fetching import fetch, fetch_file
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.errors import GlassformerError

CONTENT = bytes(range(251)) * 4001  # about a megabyte, of no round size
SHA256 = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


class Server(http.server.ThreadingHTTPServer):
    """Sends CONTENT, and misbehaves as told: `breaks` connections are cut short first."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.tag, self.ranges, self.announces = CONTENT, '"v1"', True, True
        self.breaks, self.answers, self.asked = 0, [], []

    def handle_error(self, *_):
        """The other side hung up, as some tests want it to."""

    def address(self, path="file.bin"):
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server, span = self.server, self.headers.get("Range")
        server.asked.append(dict(self.headers))
        if server.answers:
            code, target = server.answers.pop(0)
            self.send_response(code)
            if target:
                self.send_header("Location", target)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        same = self.headers.get("If-Range") in (None, server.tag)
        start = int(re.fullmatch(r"bytes=(\d+)-", span)[1]) if span and same else 0
        start = start if server.ranges else 0
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            whole = len(server.content)
            self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
        if server.tag:
            self.send_header("ETag", server.tag)
        if server.announces:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.breaks:
            server.breaks -= 1
            body = body[: len(body) // 3]
        self.wfile.write(body)


@pytest.fixture
def server():
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def get(server, target, **known):
    """Download to `target`; the pauses between attempts are told, not made."""
    pauses = []
    remote = Remote(name=target.name, url=server.address(), **known)
    fetch_file(remote, target, lambda *_: None, pause=pauses.append)
    return pauses


def left_in(folder):
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_a_file_arrives_whole_with_its_progress_told(server, tmp_path):
    told = []
    remote = Remote(name="file.bin", url=server.address(), size=len(CONTENT), checksum=SHA256)
    fetch_file(remote, tmp_path / "deep" / "file.bin", lambda *said: told.append(said))
    assert (tmp_path / "deep" / "file.bin").read_bytes() == CONTENT
    assert left_in(tmp_path / "deep") == {"file.bin"}
    assert told[-1] == ("file.bin", len(CONTENT), len(CONTENT))


def test_a_broken_connection_is_gone_on_with(server, tmp_path):
    server.breaks = 5
    assert get(server, tmp_path / "file.bin", checksum=SHA256) == [1.0] * 5
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    starts = [int(asked.get("Range", "bytes=0-")[6:-1]) for asked in server.asked]
    assert starts == sorted(set(starts))
    assert len(starts) == 6
    assert all(asked["If-Range"] == '"v1"' for asked in server.asked[1:])


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(server, tmp_path):
    server.breaks, server.answers = 1, []
    remote = Remote(name="file.bin", url=server.address())
    part = tmp_path / ".file.bin.part"
    with pytest.raises(transfer.BrokenTransferError):
        transfer.receive(remote, part, lambda *_: None)
    had = part.stat().st_size
    get(server, tmp_path / "file.bin")
    assert server.asked[-1]["Range"] == f"bytes={had}-"
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_part_of_an_older_version_is_not_gone_on_with(server, tmp_path):
    server.breaks = 1
    with pytest.raises(transfer.BrokenTransferError):
        transfer.receive(
            Remote(name="f", url=server.address()), tmp_path / ".file.bin.part", lambda *_: None
        )
    server.content, server.tag = CONTENT[::-1], '"v2"'
    get(server, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT[::-1]


def test_two_versions_put_together_are_noticed_and_fetched_anew(server, tmp_path):
    server.breaks, server.tag = 1, ""  # nothing tells the versions apart but the checksum
    with pytest.raises(transfer.BrokenTransferError):
        transfer.receive(
            Remote(name="f", url=server.address()), tmp_path / ".file.bin.part", lambda *_: None
        )
    server.content = CONTENT[::-1]
    get(server, tmp_path / "file.bin", checksum=f"md5:{hashlib.md5(CONTENT[::-1]).hexdigest()}")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT[::-1]
    assert ["Range" in asked for asked in server.asked] == [False, True, False]


def test_without_mark_and_checksum_a_part_is_begun_anew(server, tmp_path):
    server.breaks, server.tag = 1, 'W/"weak"'
    get(server, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert not any("Range" in asked for asked in server.asked)


def test_a_server_without_ranges_sends_all_again(server, tmp_path):
    server.breaks, server.ranges = 2, False
    get(server, tmp_path / "file.bin", checksum=SHA256)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_server_that_always_breaks_is_given_up(server, tmp_path):
    server.breaks, server.ranges = 99, False
    with pytest.raises(
        GlassformerError,
        match=r"gave up after 4 attempts \(the connection ended after [\d,]+ of 1,004,251 bytes\)"
        r"; download it by other means and save it as .*file\.bin$",
    ):
        get(server, tmp_path / "file.bin")
    assert not (tmp_path / "file.bin").exists()
    assert len(server.asked) == 5, "the first brought something"


@pytest.mark.parametrize(("ranges", "breaks"), [(True, 0), (True, 1), (False, 1), (True, 7)])
def test_a_wrong_checksum_is_refused_and_nothing_is_left(server, tmp_path, ranges, breaks):
    server.ranges, server.breaks = ranges, breaks
    with pytest.raises(GlassformerError, match=r"its sha256 is .*, expected 00; discarded"):
        get(server, tmp_path / "file.bin", checksum="sha256:00")
    assert left_in(tmp_path) == set()


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server, tmp_path):
    server.answers = [(503, ""), (429, "")]
    get(server, tmp_path / "file.bin")
    assert len(server.asked) == 3
    server.answers = [(404, "")]
    with pytest.raises(
        GlassformerError, match=r"the server responded 404 Not Found; download it by"
    ):
        get(server, tmp_path / "other.bin")
    assert len(server.asked) == 4


def test_a_redirect_is_followed_within_the_web_only(server, tmp_path):
    server.answers = [(302, server.address("elsewhere.bin"))]
    get(server, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    server.answers = [(302, "ftp://127.0.0.1/a"), (302, "file:///etc/hostname")]
    with pytest.raises(GlassformerError, match=r"ftp://127\.0\.0\.1/a: not a web address"):
        get(server, tmp_path / "other.bin")
    with pytest.raises(GlassformerError, match=r"'file:///etc/hostname' is not allowed"):
        get(server, tmp_path / "other.bin")
    assert left_in(tmp_path) == {"file.bin"}


def test_a_redirect_out_of_encryption_is_refused():
    request = transfer.urllib.request.Request("https://example.org/a")
    with pytest.raises(
        GlassformerError, match=r"redirects to http://example.org/b, without encryption"
    ):
        transfer.Redirects().redirect_request(request, None, 302, "", {}, "http://example.org/b")


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://example.org/a", "data:,a"])
def test_what_is_no_web_address_is_refused(url, tmp_path):
    with pytest.raises(GlassformerError, match="only http and https are followed"):
        fetch_file(Remote(name="a", url=url), tmp_path / "a", lambda *_: None)


@pytest.mark.parametrize("announces", [True, False])
def test_more_than_was_announced_is_refused(server, tmp_path, announces):
    server.announces = announces
    with pytest.raises(GlassformerError, match=r"bytes or more, expected 1,000 at most"):
        get(server, tmp_path / "file.bin", size=1_000)
    assert left_in(tmp_path) == set()


def test_less_than_was_announced_is_refused(server, tmp_path):
    with pytest.raises(GlassformerError, match=r"1,004,251 bytes, expected 1,004,252"):
        get(server, tmp_path / "file.bin", size=len(CONTENT) + 1)
    assert left_in(tmp_path) == set()


def test_a_disk_without_room_is_seen_before(server, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")(0, 0, 1_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(GlassformerError, match="1,004,251 bytes to download but 1,000 free"):
        get(server, tmp_path / "file.bin")


def test_a_place_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "taken").write_text("a file where a folder belongs")
    with pytest.raises(GlassformerError, match=r"cannot be written .* XDG_CACHE_HOME"):
        get(server, tmp_path / "taken" / "file.bin")


def test_two_processes_at_once_do_not_disturb_each_other(server, tmp_path):
    server.breaks, target = 1, tmp_path / "file.bin"
    code = (
        "import pathlib\n"
        "from glassformer.data.catalog.fetching import Remote, fetch_file\n"
        f"remote = Remote(name='f', url={server.address()!r}, checksum={SHA256!r})\n"
        f"fetch_file(remote, pathlib.Path({str(target)!r}), lambda *_: None)\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [child.wait(60) for child in children] == [0, 0]
    assert target.read_bytes() == CONTENT
    assert len(server.asked) == 2, "one downloads, in two pieces; the other finds it there"


def test_a_set_is_found_before_it_is_downloaded(server, tmp_path, monkeypatch):
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    remote = Remote(name="file.bin", url=server.address())
    storage = Storage("storage", (("file.bin",),), (remote,))
    entry = Entry(name="x", what="", licence="", source="", rows=lambda: iter(()), storage=storage)
    done = fetch(entry, lambda *_: None)
    assert done.folder == tmp_path / "cache" / "glassformer" / "data" / "storage"
    assert done.unchecked == ["file.bin"]
    assert fetch(entry, lambda *_: None) == fetching.Fetched(done.folder, ())
    (tmp_path / "data" / "storage").mkdir(parents=True)
    (tmp_path / "data" / "storage" / "file.bin.gz").write_bytes(b"")
    assert fetch(entry, lambda *_: None).folder == tmp_path / "data" / "storage"
    assert len(server.asked) == 1


def tar_of(path, *files, kind=tarfile.REGTYPE, link=""):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(content), kind, link
            tar.addfile(info, io.BytesIO(content))
    return path


def zip_of(path, *files, mode=0o644):
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in files:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            packed.writestr(info, content)
    return path


@pytest.mark.parametrize(("pack", "name"), [(tar_of, "a.tar.gz"), (zip_of, "a.zip")])
def test_an_archive_is_unpacked_once_into_the_cache(pack, name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = pack(tmp_path / name, ("in/one.wav", b"1"), ("in/two.txt", b"2"))
    folder = unpacked(archive, ".wav")
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["one.wav"]
    assert (folder / "in" / "one.wav").read_bytes() == b"1"
    made = folder.stat().st_ino
    assert unpacked(archive, ".wav").stat().st_ino == made
    assert tmp_path / "cache" in folder.parents


@pytest.mark.parametrize("name", ["../out.txt", "/out.txt", "in/../../out.txt", "c:\\out.txt"])
@pytest.mark.parametrize(("pack", "suffix"), [(tar_of, ".tar.gz"), (zip_of, ".zip")])
def test_nothing_is_unpacked_outside_the_folder(pack, suffix, name, tmp_path):
    archive = pack(tmp_path / f"bad{suffix}", ("fine.txt", b"1"), (name, b"2"))
    with pytest.raises(
        GlassformerError, match=r"not unpacked, .* points outside the folder; fetch"
    ):
        unpack(archive, tmp_path / "made" / "here")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [archive]


def test_links_are_not_unpacked(tmp_path):
    bad = [
        tar_of(tmp_path / "a.tar.gz", ("a", b""), kind=tarfile.SYMTYPE, link="/etc/hostname"),
        tar_of(tmp_path / "b.tar.gz", ("a", b""), kind=tarfile.LNKTYPE, link="../b"),
        zip_of(tmp_path / "c.zip", ("a", b"/etc/hostname"), mode=stat.S_IFLNK | 0o777),
    ]
    for archive in bad:
        with pytest.raises(GlassformerError, match="'a' in it is a link"):
            unpack(archive, tmp_path / "here")
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_FILES"])
def test_a_flood_of_bytes_or_files_is_refused(limit, tmp_path, monkeypatch):
    monkeypatch.setattr(archives, limit, 1)
    archive = tar_of(tmp_path / "a.tar.gz", ("a", b"1"), ("b", b"22"))
    with pytest.raises(GlassformerError, match="'b' in it exceeds"):
        unpack(archive, tmp_path / "here")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.zip"])
def test_a_broken_archive_is_named(name, tmp_path):
    pack = zip_of if name.endswith(".zip") else tar_of
    whole = pack(tmp_path / name, *((f"{n}.txt", CONTENT[: 999 * n]) for n in range(29)))
    whole.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(GlassformerError, match=rf"{name}: damaged or truncated .* fetch it again"):
        list(members(whole))
