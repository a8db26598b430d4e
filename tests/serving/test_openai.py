"""OpenAI's own client, pointed at a real server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xswe
from tests.conftest import Later
from tests.serving.conftest import running
from xswe.serving.config import ServeConfig

openai = Later("openai")

TEXTS = ["A cat sleeps.", "猫が寝ている。"]


@pytest.fixture(scope="module")
def address(mini) -> Iterator[str]:
    config = ServeConfig(
        port=0, threads=1, api_key="secret", aliases=("text-embedding-3-small", "team/cats"), max_texts=2048
    )
    with running(xswe.make_app(mini, config=config), config) as server:
        yield f"{server.address}/v1"


@pytest.fixture
def client(address) -> Iterator[Any]:
    with openai.OpenAI(base_url=address, api_key="secret", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("model", ["xswe", "text-embedding-3-small"])
@pytest.mark.parametrize("settings", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}, {"dimensions": 128}])
def test_it_gets_its_vectors(client, mini, model, settings):
    found = client.embeddings.create(model=model, input=TEXTS, user="somebody", **settings)
    want = mini.encode(TEXTS)[:, : settings.get("dimensions", 256)]
    want = want / np.linalg.norm(want, axis=1, keepdims=True)
    if settings.get("encoding_format") == "base64":  # which the client leaves as it is where it was asked for
        import base64

        got = np.stack([np.frombuffer(base64.b64decode(one.embedding), "<f4") for one in found.data])
    else:
        got = np.array([one.embedding for one in found.data])
    assert np.allclose(got, want, atol=1e-6)
    assert [one.index for one in found.data] == [0, 1]
    assert found.model == "xswe"
    assert found.usage.prompt_tokens == found.usage.total_tokens == len(mini.units.bags(TEXTS).ids)


def test_it_gets_2048_texts(client, mini):
    texts = [f"The train number {number} is late." for number in range(2048)]
    found = client.embeddings.create(model="xswe", input=texts)
    assert np.array_equal(np.array([one.embedding for one in found.data], np.float32), mini.encode(texts))
    assert [one.index for one in found.data] == list(range(2048))


def test_it_finds_the_model_under_its_names(client):
    names = ["xswe", "text-embedding-3-small", "team/cats"]
    assert [model.id for model in client.models.list()] == names
    for name in names:
        found = client.models.retrieve(name)
        assert (found.id, found.object, found.owned_by) == (name, "model", "xswe")
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("gpt-4")
    assert error.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("asked", "error", "param", "code"),
    [
        ({"input": [[1, 2, 3]]}, "BadRequestError", "input[0]", "invalid_type"),  # what LangChain sends by default
        ({"input": [1, 2, 3]}, "BadRequestError", "input[0]", "invalid_type"),
        ({"input": ""}, "BadRequestError", "input", "empty_string"),
        ({"input": []}, "BadRequestError", "input", "empty_array"),
        ({"input": ["a"] * 2049}, "BadRequestError", "input", "array_above_max_length"),
        ({"input": "a", "dimensions": 1000}, "BadRequestError", "dimensions", "integer_above_max_value"),
        ({"input": "a", "model": "text-embedding-ada-002"}, "NotFoundError", "model", "model_not_found"),
    ],
)
def test_its_errors_are_those_of_openai(client, asked, error, param, code):
    with pytest.raises(getattr(openai, error)) as raised:
        client.embeddings.create(**{"model": "xswe", **asked})
    assert (raised.value.type, raised.value.param, raised.value.code) == ("invalid_request_error", param, code)
    if code == "invalid_type":
        assert "send texts (in LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))" in raised.value.message


def test_a_wrong_key_and_what_is_not_offered(client):
    with pytest.raises(openai.AuthenticationError) as error:
        client.with_options(api_key="wrong").embeddings.create(model="xswe", input="a")
    assert error.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="xswe", messages=[])
    assert error.value.code == "unknown_url"


def test_who_comes_when_too_many_wait_is_told_to_come_again(mini):
    config = ServeConfig(port=0, threads=1, waiting=1)
    lines = [f"line {row} of some text" for row in range(800)]
    with (
        running(xswe.make_app(mini, config=config), config) as server,
        openai.OpenAI(base_url=server.address, api_key="none", max_retries=0) as client,
        ThreadPoolExecutor(6) as pool,
    ):
        body = {"source": lines, "target": lines}
        asked = [pool.submit(client.post, "/mine", cast_to=object, body=body) for _ in range(6)]
        errors = [error for one in asked if (error := one.exception())]
    assert 0 < len(errors) < 6
    assert {type(error) for error in errors} == {openai.RateLimitError}
    assert {(error.type, error.code, error.response.headers["retry-after"]) for error in errors} == {
        ("requests", "rate_limit_exceeded", "1")
    }


def test_any_name_is_answered_where_that_is_set(mini):
    config = ServeConfig(port=0, threads=1, aliases=("*",))
    with running(xswe.make_app(mini, config=config), config) as server:
        client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0)
        assert client.embeddings.create(model="whatever", input="a").model == "xswe"
        assert client.models.retrieve("whatever").id == "whatever"
        assert [model.id for model in client.models.list()] == ["xswe"]
        client.close()


@pytest.mark.slow
def test_langchain_gets_its_vectors(address, mini):
    langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    model = langchain.OpenAIEmbeddings(base_url=address, api_key="secret", model="xswe", check_embedding_ctx_length=False)
    assert np.allclose(model.embed_documents(TEXTS), mini.encode(TEXTS), atol=1e-6)
