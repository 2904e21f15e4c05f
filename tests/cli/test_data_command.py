"""`glassformer data`: what there is, what is known of it, and how it comes here."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading
from functools import partial

import pytest

from glassformer.cli import main
from glassformer.data import catalog
from glassformer.data.catalog import CATALOG, Entry
from glassformer.data.catalog.storage import Remote, Storage
from glassformer.data.sources import read_rows

TABLE = b"text,label,split\nfine [film],pos,train\ndull,neg,train\nwarm,pos,test\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def reviews(tmp_path, monkeypatch):
    """A set that a server nearby has; returns a way to say how it is checked."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "reviews.csv").write_bytes(TABLE)
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = partial(Quiet, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

        def offer(checksum=None, name="reviews.csv"):
            url = f"http://127.0.0.1:{server.server_port}/{name}"
            remote = Remote(name="reviews.csv", url=url, checksum=checksum)
            storage = Storage("reviews", (("reviews.csv",),), (remote,))
            entry = Entry(
                name="reviews",
                what="three reviews",
                licence="CC0",
                source="https://example.org",
                rows=lambda: read_rows(storage.files("reviews")["reviews.csv"]),
                storage=storage,
            )
            monkeypatch.setitem(catalog.CATALOG, "reviews", entry)

        yield offer
        server.shutdown()


def test_the_list_names_every_set_with_its_licence_and_whether_it_is_here(reviews, capsys):
    reviews()
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, entry in CATALOG.items():
        [line] = [
            line for line in lines if line.split("│")[1:2] and name == line.split("│")[1].strip()
        ]
        assert entry.what in line
        assert entry.licence in line
        here = name in ("languages", "dates", "morse", "python-reference", "digits", "films")
        assert line.split("│")[4].strip() == ("on board" if here else "no")


def test_a_set_is_fetched_checked_and_then_shown(reviews, tmp_path, capsys):
    reviews(f"sha256:{hashlib.sha256(TABLE).hexdigest()}")
    assert main(["data", "show", "reviews"]) == 0
    before = capsys.readouterr().out
    assert "here      no" in before
    assert "(published, not verified)" in before
    assert main(["data", "fetch", "reviews"]) == 0
    printed = capsys.readouterr()
    folder = tmp_path / "cache" / "glassformer" / "data" / "reviews"
    assert printed.out == f"{folder}\n"
    assert printed.err == "reviews: 3 rows; there is no record to compare with\n"
    assert main(["data", "show", "reviews"]) == 0
    after = capsys.readouterr().out
    assert f"here      {folder}" in after
    assert "rows      2 train, 1 test" in after
    assert "row       text = 'fine [film]', label = 'pos', split = 'train'" in after


def test_all_of_it_comes_as_json_too(reviews, capsys):
    reviews()
    assert main(["data", "fetch", "reviews", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"train": 2, "test": 1}
    assert main(["data", "show", "reviews", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["first"][2] == {"text": "warm", "label": "pos", "split": "test"}
    assert shown["files"][0]["checksum"] is None
    assert main(["data", "list", "--json"]) == 0
    assert [s["name"] for s in json.loads(capsys.readouterr().out)["sets"]] == list(CATALOG)


def test_a_download_that_nothing_can_check_says_so(reviews, capsys):
    reviews()
    assert main(["data", "fetch", "reviews"]) == 0
    assert (
        "reviews.csv: downloaded without verification, no checksum is known"
        in capsys.readouterr().err
    )


def test_a_wrong_or_missing_file_is_one_line_that_says_where_to_put_it(reviews, tmp_path, capsys):
    for offered, why in (
        ({"checksum": "md5:00"}, "its md5 is"),
        ({"name": "no.csv"}, "responded 404"),
    ):
        reviews(**offered)
        assert main(["data", "fetch", "reviews"]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        [line] = printed.err.splitlines()
        assert why in line
        assert line.endswith(f"save it as {tmp_path}/cache/glassformer/data/reviews/reviews.csv")


def test_what_is_on_board_needs_no_fetching(capsys):
    assert main(["data", "fetch", "languages"]) == 0
    assert capsys.readouterr().out == "on board\n"


@pytest.mark.parametrize("verb", ["show", "fetch"])
def test_a_misspelt_name_is_answered_with_the_nearest(verb, capsys):
    assert main(["data", verb, "multi30k-en-ed"]) == 1
    assert "did you mean 'multi30k-en-de'?" in capsys.readouterr().err


def test_help_does_not_wait_for_torch():
    code = "import sys; from glassformer.cli import main; main(['data', '--help']);"
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_family_goes_by_one_name(capsys):
    assert main(["data", "show", "multi30k"]) == 0
    out = capsys.readouterr().out
    assert "name      multi30k-en-de" in out
    assert "multi30k-2017-en-fr" in out
