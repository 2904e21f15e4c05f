"""Tokens of pairs: kinds by what texts look like, one vocabulary or two, tags, other runs."""

import pytest
from small_jobs import job_of
from small_pairs import pair_job

from glassformer.config import TokenizerConfig
from glassformer.errors import GlassformerError
from glassformer.tasks.translate.reporter import TranslateReporter
from glassformer.tasks.translate.tokens import PairTokens, are_symbols, settled

ENGLISH = [
    "The young man sees an old house near the river.",
    "A woman with two dogs walks under the trees.",
    "Three children play with a red ball in the park.",
    "It rains, and nobody wants to leave the station.",
]
GERMAN = [
    "Der junge Mann sieht ein altes Haus nahe dem Fluss.",
    "Eine Frau mit zwei Hunden geht unter den Bäumen.",
    "Drei Kinder spielen mit einem roten Ball im Park.",
    "Es regnet, und niemand will den Bahnhof verlassen.",
]
CHINESE = [
    "早上好！",
    "这个年轻人看见了一座老房子。",
    "下雨了，没有人想离开。",
    "三个孩子在公园里玩。",
]
WORDS = ["read", "door", "red", "rod", "order", "adder", "dared", "rode"]
NAMES = ["Ann", "Ben", "Cleo", "Dora"]
PHONEMES = ["R IY D", "D AO R", "R EH D", "R AA D", "AO R D ER", "AE D ER", "D EH R D", "R OW D"]


def paired(sources, targets, times=1):
    return list(zip(sources, targets, strict=True)) * times


@pytest.mark.parametrize(
    ("pairs", "kinds", "joint"),
    [
        (paired(ENGLISH, GERMAN), ("bpe", "bpe"), True),
        (paired(ENGLISH, CHINESE), ("bpe", "characters"), False),
        (paired(CHINESE, ENGLISH), ("characters", "bpe"), False),
        (paired(WORDS, PHONEMES, 5), ("characters", "words"), False),
        (paired(WORDS, [word[::-1] for word in WORDS]), ("characters", "characters"), True),
        (paired(CHINESE, CHINESE[::-1]), ("characters", "characters"), True),
    ],
    ids=["en-de", "en-zh", "zh-en", "phonemes", "letters", "zh-zh"],
)
def test_kinds_follow_from_the_texts_and_alike_sides_share(pairs, kinds, joint, tmp_path):
    job = pair_job(tmp_path / "job", pairs)
    assert (job.pair.source.kind, job.pair.target.kind) == kinds
    assert job.pair.joint is joint
    assert job.settings.joint is joint
    assert (job.config.data.tokenizer.kind, job.settings.target.kind) == kinds
    sizes = job.config.data.tokenizer.vocabulary, job.settings.target.vocabulary
    assert sizes == (job.pair.source_size, job.pair.target_size)
    for (source, target), row in zip(pairs, range(len(pairs)), strict=True):
        assert job.pair.source.decode(job.sources[row]) == source
        assert job.pair.target.decode(job.targets[row]) == target


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe", "unigram"])
@pytest.mark.parametrize("joint", [True, False])
def test_a_kind_that_is_named_holds_for_both_sides(kind, joint, tmp_path):
    settings = {"data": {"tokenizer": {"kind": kind, "vocabulary": 300}}, "task": {"joint": joint}}
    job = pair_job(tmp_path / "job", paired(ENGLISH, GERMAN), **settings)
    assert (job.pair.source.kind, job.pair.target.kind) == (kind, kind)
    assert job.pair.joint is joint
    assert job.config.model.share is joint


def test_symbols_stay_whole_whatever_the_source_is_made_of(tmp_path):
    settings = {"data": {"tokenizer": {"kind": "bpe", "vocabulary": 300, "dropout": 0.1}}}
    job = pair_job(tmp_path / "job", paired(WORDS, PHONEMES, 5), **settings)
    assert job.settings.target == TokenizerConfig(
        kind="words", vocabulary=job.pair.target.size, lowercase=False
    )
    assert job.pair.target.pieces(job.targets[0]) == ["R", "IY", "D"]


def test_a_target_of_its_own_settings_has_its_own_vocabulary(tmp_path):
    job = pair_job(
        tmp_path / "job",
        paired(ENGLISH, GERMAN),
        data={"tokenizer": {"vocabulary": 275}},
        task={"target": {"vocabulary": 270}},
    )
    assert not job.pair.joint
    assert (job.pair.source.size, job.pair.target.size) == (275, 270)
    with pytest.raises(GlassformerError, match=r"vocabulary is 275 for the source and 270 for the"):
        pair_job(
            tmp_path / "other",
            paired(ENGLISH, GERMAN),
            data={"tokenizer": {"vocabulary": 275}},
            task={"target": {"vocabulary": 270}, "joint": True},
        )


def test_a_joint_vocabulary_that_is_asked_for_is_of_the_sources_kind(tmp_path):
    job = pair_job(tmp_path / "job", paired(ENGLISH, CHINESE), task={"joint": True})
    assert job.pair.joint
    assert job.settings.target.kind == job.config.data.tokenizer.kind == "bpe"


def test_few_words_are_symbols_only_if_they_come_again():
    assert are_symbols(PHONEMES * 5)
    assert not are_symbols(PHONEMES[:1])
    assert not are_symbols(ENGLISH)
    assert not are_symbols(["one", "two"] * 50)  # no blank in any
    assert not are_symbols([f"{n} {n + 1}" for n in range(129)] * 20)  # too many of them
    assert settled(TokenizerConfig(), ENGLISH).kind == "bpe"
    assert settled(TokenizerConfig(kind="unigram"), PHONEMES * 5).kind == "unigram"


@pytest.mark.parametrize("text", ["[]", "null", '{"tags": null}', '{"tags": [3]}', "{}", "{", "3"])
def test_broken_tags_are_refused_in_one_line(text, tmp_path):
    pair_job(tmp_path / "job", paired(ENGLISH, GERMAN))
    path = tmp_path / "job" / "tags.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(GlassformerError) as refusal:
        PairTokens.load(tmp_path / "job")
    assert str(refusal.value).startswith(f"{path}: not the target languages of a run (")
    assert str(refusal.value).endswith("; copy the run again")


@pytest.mark.parametrize("joint", [True, False])
def test_tokens_come_back_from_their_folder(joint, tmp_path):
    rows = [
        {"source": s, "target": t, "to": to}
        for (s, t), to in zip(paired(ENGLISH, GERMAN), ["de", "fr", "de", "fr"], strict=True)
    ]
    job = pair_job(tmp_path / "job", rows, task={"joint": joint})
    again = PairTokens.load(tmp_path / "job")
    assert again.joint is joint
    assert again.tags == ("de", "fr")
    assert again.source.to_json() == job.pair.source.to_json()
    assert again.target.to_json() == job.pair.target.to_json()
    assert again.source_size == again.source.size + 2
    assert again.target_size == (again.source_size if joint else again.target.size)
    de, fr = again.tag("de", "here"), again.tag("fr", "here")
    assert {de, fr} == {again.source.size, again.source.size + 1}


# Tokens of another run


def test_tokens_of_another_translator_are_taken_as_they_are(tmp_path):
    first = pair_job(tmp_path / "first", paired(WORDS, PHONEMES, 5))
    second = pair_job(tmp_path / "second", paired(WORDS[:2], PHONEMES[:2]), tmp_path / "first")
    assert second.pair.source.to_json() == first.pair.source.to_json()
    assert second.pair.target.to_json() == first.pair.target.to_json()
    assert second.settings.target.kind == "words"
    assert not second.settings.joint


def test_of_a_run_that_only_reads_the_tokens_of_the_source_are_taken(tmp_path):
    texts = [{"text": text} for text in ENGLISH]
    reader = job_of("pretrain", tmp_path / "reader", texts)
    job = pair_job(tmp_path / "job", paired(ENGLISH, GERMAN), tmp_path / "reader")
    assert job.pair.source.to_json() == reader.tokenizer.to_json()
    assert not job.pair.joint
    assert job.pair.target.decode(job.targets[1]) == GERMAN[1]


def test_a_run_without_tags_cannot_teach_data_that_has_them(tmp_path):
    pair_job(tmp_path / "first", paired(ENGLISH, GERMAN))
    rows = [{"source": "a", "target": "b", "to": "de"}]
    with pytest.raises(GlassformerError, match="first: has one target language, but the data"):
        pair_job(tmp_path / "second", rows, tmp_path / "first")


def test_sentences_of_few_words_are_no_symbols(tmp_path):
    rows = [(f"{a} sees {b}.", f"{b} wird von {a} gesehen.") for a in NAMES for b in NAMES]
    job = pair_job(tmp_path / "job", rows)
    assert (job.settings.measure, job.settings.target.kind) == ("text", "bpe")
    assert TranslateReporter(job).remarks() == []
    spelt = pair_job(tmp_path / "spelt", paired(WORDS, PHONEMES, 5))
    assert spelt.settings.measure == "symbols"
    assert (
        TranslateReporter(spelt).remarks()[0].startswith("targets look like words spelt in symbols")
    )
    lower = pair_job(tmp_path / "lower", rows, data={"tokenizer": {"lowercase": True}})
    assert "answers are in lower case" in TranslateReporter(lower).remarks()[0]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"data": {"tokenizer": {"kind": "bytes"}}}, r"data\.tokenizer\.kind=bytes is not what"),
        ({"task": {"target": {"lowercase": True}}}, r"task\.target\.lowercase=True is not what"),
        ({"data": {"tokenizer": {"simplified": True}}}, r"data\.tokenizer\.simplified=True is n"),
    ],
)
def test_tokens_of_another_run_cannot_be_changed(settings, told, tmp_path):
    rows = paired(ENGLISH, GERMAN)
    pair_job(tmp_path / "first", rows)
    with pytest.raises(GlassformerError, match=told):
        pair_job(tmp_path / "second", rows, tmp_path / "first", **settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"data": {"tokenizer": {"kind": "bytes"}}},
            r"data\.tokenizer\.kind=bytes is not what .*r",
        ),
        (
            {"task": {"joint": True}},
            r"task\.joint=true, but .*reader both sides have separate vocab",
        ),
    ],
)
def test_neither_can_those_of_a_run_that_only_reads(settings, told, tmp_path):
    job_of("pretrain", tmp_path / "reader", [{"text": text} for text in ENGLISH])
    with pytest.raises(GlassformerError, match=told):
        pair_job(tmp_path / "job", paired(ENGLISH, GERMAN), tmp_path / "reader", **settings)


@pytest.mark.parametrize("joint", [True, False])
def test_tokens_of_another_run_are_shared_as_they_were(joint, tmp_path):
    rows = paired(ENGLISH, GERMAN)
    pair_job(tmp_path / "first", rows, task={"joint": joint})
    again = pair_job(tmp_path / "again", rows, tmp_path / "first", task={"joint": joint})
    assert again.settings.joint is joint
    have = "share a vocabulary" if joint else "have separate vocabularies"
    with pytest.raises(GlassformerError, match=rf"both sides {have}; leave it out, or train with"):
        pair_job(tmp_path / "other", rows, tmp_path / "first", task={"joint": not joint})


@pytest.mark.parametrize("tag", ["d>e", " fr", "<de>"])
def test_a_target_language_that_cannot_be_typed_is_refused_with_its_row(tag, tmp_path):
    rows = [{"source": "a", "target": "b", "to": one} for one in ("de", tag)]
    with pytest.raises(GlassformerError, match=r"row 2: the target language .* cannot be typed"):
        pair_job(tmp_path / "job", rows)
