"""The sentences of the pictures have a Chinese form, which the page of a server shows."""

import re
from importlib.resources import files

from glassformer.explaining.views import wording
from glassformer.explaining.views.page import drawing
from glassformer.explaining.views.selection import TITLES


def chinese():
    """The sentences that the page of a server has in Chinese."""
    text = (files("glassformer.serving.page") / "strings" / "zh.js").read_text(encoding="utf-8")
    pictures = text.split("export const pictures")[1]
    return {quoted or word for quoted, word in re.findall(r'^  (?:"(.+?)"|(\w+)):', pictures, re.M)}


def said():
    """The sentences in the scripts."""
    script = drawing()
    found = {*re.findall(r'\b(?:say|phrase)\(\s*"([^"]+)"', script)}
    for yes, no in re.findall(r'\bsay\(\s*[^"()?]+ \? "([^"]+)" : "([^"]+)"', script):
        found |= {yes, no}
    for several in re.findall(r"\bcolumns\(([^)]*)\)", script):
        found |= {*re.findall(r'"([^"]+)"', several)}
    return found


def test_every_sentence_of_the_pictures_is_there_in_chinese():
    sentences = said()
    assert len(sentences) > 50
    assert sentences <= chinese()


def test_every_way_to_read_a_picture_is_there_in_chinese():
    signed = wording.reading_of("occlusion", signed=True)
    others = [wording.reading_of(name, signed=False) for name in ("attention", "gradient_norm")]
    for reading in (signed, *others):
        assert {*filter(None, reading)} <= chinese()
    assert {*TITLES.values()} <= chinese()
