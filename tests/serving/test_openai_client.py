"""The server as OpenAI's own client sees it."""

import json

import numpy as np
import openai
import pytest
from small_served import recording, refusal, wait_until

import glassformer

GREEDY = {"model": "bottles", "prompt": "3 green", "temperature": 0, "max_tokens": 12}
SAMPLED = GREEDY | {"temperature": 1.5, "max_tokens": 9}


@pytest.fixture(scope="module")
def client(served):
    return served.client()


def test_models_are_listed_by_the_names_of_their_folders(client, runs):
    listed = client.models.list().data
    assert {one.id for one in listed} == {*runs}
    assert client.models.retrieve("reviews").id == "reviews"
    assert {one.id: one.job for one in listed}["words"] == "translate"


def test_a_completion_is_what_predict_continues(client, runs):
    found = client.completions.create(**GREEDY)
    settings = ["decode.method=greedy", "decode.max_length=12"]
    own = glassformer.load(runs["bottles"], device="cpu").predict("3 green", set=settings)
    assert found.choices[0].text == own.details["continuation"]
    assert found.choices[0].finish_reason == "length"
    assert found.usage.completion_tokens == 12
    assert found.usage.prompt_tokens == len("3 green") + 1
    assert client.completions.create(**GREEDY, echo=True).choices[0].text == own.text


def test_a_stream_is_the_completion_in_pieces(client):
    for request in (GREEDY, SAMPLED | {"n": 3, "seed": 5, "logprobs": 2}):
        whole = client.completions.create(**request)
        texts, scores, reasons = {}, {}, {}
        options = {"include_usage": True}
        for chunk in client.completions.create(**request, stream=True, stream_options=options):
            for choice in chunk.choices:
                texts[choice.index] = texts.get(choice.index, "") + choice.text
                reasons[choice.index] = choice.finish_reason
                if choice.logprobs:
                    scores.setdefault(choice.index, []).extend(choice.logprobs.token_logprobs)
            usage = chunk.usage
        assert texts == {one.index: one.text for one in whole.choices}
        assert reasons == {one.index: one.finish_reason for one in whole.choices}
        assert usage == whole.usage
        for number, found in scores.items():
            assert found == pytest.approx(whole.choices[number].logprobs.token_logprobs, abs=1e-4)


def test_the_tokens_of_a_completion_are_counted_whole_or_streamed(client, served):
    def tokens():
        name = 'glassformer_tokens_total{kind="completion",model="bottles"} '
        lines = served.get("/metrics").text.splitlines()
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    for stream in (False, True):
        before = tokens()
        found = client.completions.create(**GREEDY, stream=stream)
        assert not stream or len(list(found)) > 1
        wait_until(lambda before=before: tokens() == before + 12)


def test_answers_depend_on_the_seed_alone(client):
    first, again = (client.completions.create(**SAMPLED, seed=3, n=4) for _ in range(2))
    texts = [one.text for one in first.choices]
    assert texts == [one.text for one in again.choices]
    assert len({*texts}) > 1
    assert client.completions.create(**SAMPLED, seed=4).choices[0].text != texts[0]
    assert client.completions.create(**SAMPLED).choices[0].text


def test_several_prompts_have_their_continuations_in_order(client):
    prompts = ["3 green", "and if", "the wall"]
    several = client.completions.create(**GREEDY | {"prompt": prompts}, n=2)
    alone = [client.completions.create(**GREEDY | {"prompt": text}) for text in prompts]
    texts = [one.text for one in several.choices]
    assert texts == [one.choices[0].text for one in alone for _ in range(2)]


def test_a_stop_text_ends_a_completion_before_it(client):
    text = client.completions.create(**GREEDY).choices[0].text
    stop = text[3:5]
    for stream in (False, True):
        found = client.completions.create(**GREEDY, stop=[stop, "§"], stream=stream)
        choices = [chunk.choices[0] for chunk in found] if stream else found.choices
        assert "".join(one.text for one in choices) == text[: text.index(stop)]
        assert choices[-1].finish_reason == "stop"


def test_log_probabilities_come_with_the_likeliest_tokens(client):
    found = client.completions.create(**GREEDY, logprobs=3).choices[0]
    assert "".join(found.logprobs.tokens) == found.text
    assert found.logprobs.text_offset == list(range(12))
    for token, score, top in zip(
        found.logprobs.tokens,
        found.logprobs.token_logprobs,
        found.logprobs.top_logprobs,
        strict=True,
    ):
        assert len(top) == 3
        assert max(top, key=top.get) == token
        assert top[token] == pytest.approx(score)


@pytest.mark.parametrize("stop", [None, ["en bo", "ottles"], [" w"]])
def test_a_stream_has_the_log_probabilities_of_the_whole(served, stop):
    reasons = set()
    for seed in range(6):
        asked = SAMPLED | {"seed": seed, "logprobs": 1, "stop": stop, "max_tokens": 60}
        [whole] = served.post("/v1/completions", asked).json()["choices"]
        text = served.post("/v1/completions", asked | {"stream": True}).text
        events = [line.removeprefix("data: ") for line in text.split("\n\n")][:-2]
        chunks = [json.loads(one)["choices"][0] for one in events]
        for name, values in whole["logprobs"].items():
            assert [value for one in chunks for value in one["logprobs"][name]] == values
        assert "".join(one["text"] for one in chunks) == whole["text"]
        reasons.add(whole["finish_reason"])
    assert stop is None or "stop" in reasons


def test_a_stop_text_has_a_limit(served):
    for stop in ("z" * 257, ["a", "z" * 100_000]):
        found = served.post("/v1/completions", GREEDY | {"stop": stop, "stream": True})
        assert refusal(found) == (422, "invalid_value")
        assert found.json()["error"]["param"] == "stop"
        assert "more than 256 (limits.stop of the server); shorten it" in found.text
    assert served.post("/v1/completions", GREEDY | {"stop": "z" * 256}).status_code == 200


def test_defaults_that_clients_send_change_nothing(client):
    given = {"frequency_penalty": 0, "presence_penalty": 0.0, "best_of": 1}
    found = client.completions.create(**GREEDY, **given)
    assert found.choices[0].text == client.completions.create(**GREEDY).choices[0].text
    for name, value in (("frequency_penalty", 0.5), ("presence_penalty", -1), ("best_of", 2)):
        with pytest.raises(openai.UnprocessableEntityError, match=f"{name}: must be at"):
            client.completions.create(**GREEDY, **{name: value})
    with pytest.raises(openai.UnprocessableEntityError, match="max_tokens: must be at most"):
        client.completions.create(**GREEDY | {"max_tokens": 10**7})


@pytest.mark.parametrize("name", ["reviews", "gaps"])
def test_embeddings_are_vectors_of_length_one_as_in_python(client, runs, name):
    texts = ["the film was great", "the film was great and lovely", "dull"]
    found = client.embeddings.create(model=name, input=texts)
    vectors = np.array([one.embedding for one in found.data])
    in_python = glassformer.load(runs[name], device="cpu").embed(texts)
    np.testing.assert_allclose(vectors, in_python, atol=1e-5)
    assert vectors.shape == (3, 16)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    plain = client.embeddings.create(model=name, input=texts[0], encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(vectors[0].tolist(), abs=1e-5)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > far
    assert found.usage.prompt_tokens > 3


def test_an_embedding_of_a_long_text_is_the_mean_of_its_pieces(runs):
    run = glassformer.load(runs["gaps"], device="cpu")
    words = ["the", "film", "was", "a", "and", "b"] * 31
    vectors = run.predictor.embed(run.model, [" ".join(words), "the film"])
    assert vectors.shape == (2, 16)
    assert np.isfinite(vectors).all()


def test_a_transcription_has_every_form(client):
    sound = recording("bead ace")

    def written(form, **options):
        file = ("../../etc/passwd", sound)
        create = client.audio.transcriptions.create
        return create(model="speech", file=file, response_format=form, **options)

    text = written("json").text
    assert text
    assert written("text").strip() == text.strip()
    assert written("srt").startswith("1\n00:00:00,")
    assert written("vtt").startswith("WEBVTT\n\n1\n00:00:00.")
    both = written("verbose_json", timestamp_granularities=["word", "segment"])
    assert both.text == text
    for timed in ([word.word for word in both.words], [cue.text for cue in both.segments]):
        assert "".join(timed).replace(" ", "") == text.replace(" ", "")
    starts = [word.start for word in both.words]
    assert starts == sorted(starts)
    assert written("verbose_json").words is None


def test_what_is_wrong_is_an_error_of_the_client(client, served):
    with pytest.raises(openai.NotFoundError, match="did you mean 'bottles'"):
        client.completions.create(model="botles", prompt="")
    with pytest.raises(openai.UnprocessableEntityError, match="ask it at /v1/classify"):
        client.completions.create(model="reviews", prompt="")
    with pytest.raises(openai.UnprocessableEntityError, match="n is at most 16"):
        client.completions.create(**GREEDY, n=17)
    with pytest.raises(openai.UnprocessableEntityError, match="leave out echo or logprobs"):
        client.completions.create(**GREEDY, echo=True, logprobs=1)
    with pytest.raises(openai.UnprocessableEntityError, match="suffix: unknown field"):
        client.completions.create(**GREEDY, suffix="end")
    with pytest.raises(openai.UnprocessableEntityError, match="verbose_json; set response_format"):
        client.audio.transcriptions.create(
            model="speech", file=("a.wav", recording("ace")), timestamp_granularities=["word"]
        )
    found = served.post("/v1/nothing", {})
    assert refusal(found) == (404, "http_error")
    assert "/docs lists" in found.text
    broken = {"content": b'{"model": }', "headers": {"content-type": "application/json"}}
    found = served.post("/v1/completions", **broken)
    assert refusal(found) == (422, "invalid_json")
    assert "error at character 10" in found.text
    assert refusal(served.get("/v1/completions")) == (405, "http_error")


def test_a_field_of_several_types_is_refused_for_its_content(served):
    found = served.post("/v1/completions", GREEDY | {"stop": ["a", "b", "c", "d", "e"]})
    assert refusal(found) == (422, "invalid_value")
    error = found.json()["error"]
    assert error["param"] == "stop"
    assert "at most 4 items" in error["message"]
