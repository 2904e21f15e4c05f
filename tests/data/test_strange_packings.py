"""Packed files that no usual program makes: each is refused in one line, and in bounds."""

import gzip
import io
import random
import tarfile
import zipfile

import pytest

from glassformer.data.catalog.archives import members
from glassformer.data.sources import parquet, read_rows
from glassformer.errors import GlassformerError

METHOD_IN_HEADER, METHOD_IN_DIRECTORY = 8, 10  # where a zip tells how a member is packed


def zipped():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "warm " * 53)
        archive.writestr("b/ü.txt", "x" * 97)
    return packed.getvalue()


def tarred():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("a.txt")
        info.size = 307
        archive.addfile(info, io.BytesIO(b"x" * 307))
    return packed.getvalue()


def test_a_zip_of_a_method_that_nobody_knows_is_refused_in_one_line(tmp_path):
    content = bytearray(zipped())
    content[METHOD_IN_HEADER] = 97
    content[content.index(b"PK\x01\x02") + METHOD_IN_DIRECTORY] = 97
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(GlassformerError) as caught:
        list(members(tmp_path / "a.zip"))
    assert str(caught.value) == (
        f"{tmp_path / 'a.zip'}: packed in a way that cannot be undone here (That compression "
        f"method is not supported); pack it again with a usual program, or fetch another archive"
    )


@pytest.mark.parametrize(("name", "pack"), [("a.zip", zipped), ("a.tar.gz", tarred)])
def test_any_damage_to_an_archive_gives_its_files_or_one_line(name, pack, tmp_path):
    whole, dice, path = pack(), random.Random(name), tmp_path / name
    for _ in range(499):
        content = bytearray(whole)
        for _ in range(dice.choice((1, 1, 2, 7))):
            content[dice.randrange(len(content))] = dice.randrange(256)
        path.write_bytes(content[: dice.choice((len(content), dice.randrange(len(content))))])
        line = ""
        try:
            list(members(path))
        except GlassformerError as error:
            line = str(error)
        assert "\n" not in line


def test_a_packed_parquet_file_is_unpacked_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "MOST_UNPACKED", 10**6)
    path = tmp_path / "x.parquet.gz"
    path.write_bytes(gzip.compress(bytes(10**6 + 1)))
    with pytest.raises(GlassformerError) as caught:
        list(read_rows(path))
    assert str(caught.value) == (
        f"{path}: unpacks to more than 1,000,000 bytes; look at what is in it, and give it unpacked"
    )
