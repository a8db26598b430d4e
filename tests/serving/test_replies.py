"""Messages, refusals, logs and counts, each by itself: what exactly is written."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from starlette.exceptions import HTTPException

from xswe.errors import ConfigError
from xswe.serving import messages as m
from xswe.serving import service, systemd
from xswe.serving.config import ServeConfig
from xswe.serving.embeddings import check_model, check_texts
from xswe.serving.logs import JsonLines, identity, log_request
from xswe.serving.messages import MODEL, Operation, describe, from_query
from xswe.serving.metrics import Metrics
from xswe.serving.refusals import Refused, failure, refused

REQUEST = SimpleNamespace(method="GET", url=SimpleNamespace(path="/a"))


def said(response):
    headers = {name: value for name, value in response.headers.items() if name not in ("content-length", "content-type")}
    return response.status_code, json.loads(response.body)["error"], headers


@pytest.mark.parametrize(
    ("status", "kind", "code", "headers"),
    [
        (400, "invalid_request_error", None, {}),
        (401, "invalid_request_error", "invalid_api_key", {"www-authenticate": "Bearer"}),
        (404, "invalid_request_error", "unknown_url", {}),
        (405, "invalid_request_error", "method_not_supported", {}),
        (408, "invalid_request_error", None, {"connection": "close"}),
        (413, "invalid_request_error", None, {"connection": "close"}),
        (429, "requests", "rate_limit_exceeded", {"retry-after": "1"}),
        (499, "invalid_request_error", None, {}),
        (500, "server_error", None, {}),
        (503, "server_error", None, {"retry-after": "1"}),
    ],
)
def test_a_failure_has_the_form_of_openai(status, kind, code, headers):
    fault = {"message": "x", "type": kind, "param": None, "code": code}
    assert said(failure(status, "x")) == (status, fault, headers)
    named = said(failure(status, "x", "input", "own", {"allow": "GET"}))
    assert named == (status, fault | {"param": "input", "code": "own"}, headers | {"allow": "GET"})


@pytest.mark.parametrize(
    ("error", "status", "message", "param", "code"),
    [
        (Refused(418, "no tea", "pot", "own"), 418, "no tea", "pot", "own"),
        (
            HTTPException(405, "Not Allowed", {"allow": "POST"}),
            405,
            "GET /a: Not Allowed; /api lists what there is",
            None,
            "method_not_supported",
        ),
        (ConfigError("wrong"), 400, "wrong", None, None),
        (ValueError("odd"), 400, "not JSON: odd", None, None),
    ],
)
def test_each_error_of_a_user_is_told(error, status, message, param, code):
    found = said(refused(REQUEST, error))
    assert (found[0], found[1]["message"], found[1]["param"], found[1]["code"]) == (status, message, param, code)


@pytest.mark.parametrize(
    ("body", "param", "code", "message"),
    [
        ({}, "input", "missing_required_parameter", "Object missing required field `input`"),
        ({"input": "a", "encoding_format": "x"}, "encoding_format", "invalid_value", "Invalid enum value 'x'"),
        ({"input": "a", "dimensions": 0}, "dimensions", "integer_below_min_value", "Expected `int` >= 1"),
        ({"input": "a", "dimensions": "b"}, "dimensions", "invalid_type", "Expected `int | null`, got `str`"),
        ({"input": [["a"]]}, "input[0]", "invalid_type", "input[0]: token ids come from another model's tokenizer"),
        ({"input": [1]}, "input[0]", "invalid_type", "input[0]: token ids come from another model's tokenizer"),
        ({"input": [None]}, "input[0]", "invalid_type", "Expected `str`, got `null`"),
        ([], None, "invalid_type", "Expected `object`, got `array`"),
    ],
)
def test_what_is_wrong_with_a_message_is_named(body, param, code, message):
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(json.dumps(body), type=m.EmbeddingsRequest)
    status, fault, _ = said(refused(REQUEST, raised.value))
    assert (status, fault["param"], fault["code"]) == (400, param, code)
    assert fault["message"].startswith(message)


def test_a_field_that_no_message_has_is_named():
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(b'{"query": "a", "nope": 1}', type=m.SearchRequest)
    _, fault, _ = said(refused(REQUEST, raised.value))
    assert (fault["param"], fault["code"]) == ("nope", "unknown_parameter")


def test_the_id_of_a_request_is_the_one_given_if_it_is_plain():
    for given in (b"a", b"A.b_c:d-9", b"x" * 64):
        assert identity({b"x-request-id": given}) == given
    for wrong in (b"", b"x" * 65, b"a b", b"a\n", "ü".encode()):
        assert re.fullmatch(rb"[0-9a-f]{16}", identity({b"x-request-id": wrong}))
    assert identity({}) != identity({})


def test_a_request_is_logged_in_a_line(caplog):
    caplog.set_level(logging.INFO, "xswe.access")
    log_request({"client": ("1.2.3.4", 5), "method": "GET", "path": "/a\nb"}, "id", 200, 0.01234)
    log_request({"client": None, "method": "POST", "path": "/"}, "x", 503, 2.0)
    assert caplog.messages == ["1.2.3.4 GET '/a\\nb' 200 12.3 ms id", "- POST '/' 503 2000.0 ms x"]
    record = caplog.records[0]
    record.created = 86400.5
    assert json.loads(JsonLines().format(record)) == {
        "time": "1970-01-02T00:00:00.500+00:00",
        "level": "info",
        "logger": "xswe.access",
        "message": caplog.messages[0],
        **{"request": "id", "client": "1.2.3.4", "method": "GET", "path": "/a\nb", "status": 200, "ms": 12.3},
    }
    try:
        raise KeyError("lost")
    except KeyError:
        record = logging.LogRecord("a", logging.ERROR, "", 1, "x %s", ("y",), sys.exc_info())
    line = json.loads(JsonLines().format(record))
    assert (line["level"], line["message"]) == ("error", "x y")
    assert line["exception"].endswith("KeyError: 'lost'")


def test_requests_are_counted_by_path_and_status():
    metrics = Metrics({"/a", MODEL}, lambda: 3, lambda: 4096)
    for path, status, seconds in (
        ("/a", 200, 0.002),
        ("/a", 200, 0.03),
        ("/a", 503, 20),
        ("/x", 404, 1),
        ("/v1/models/y", 200, 1),
    ):
        metrics.add(path, status, seconds)
    metrics.texts.inc(7)
    lines = metrics.render().decode().splitlines()
    assert {line for line in lines if line.startswith("xswe_requests_total")} == {
        'xswe_requests_total{path="/a",status="200"} 2.0',
        'xswe_requests_total{path="/a",status="503"} 1.0',
        'xswe_requests_total{path="other",status="404"} 1.0',
        f'xswe_requests_total{{path="{MODEL}",status="200"}} 1.0',
    }
    own = [line for line in lines if line.startswith("xswe_request_seconds_bucket") and '"/a"' in line]
    bounds = ["0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "10.0", "+Inf"]
    counts = [sum(taken <= float(bound) for taken in (0.002, 0.03, 20)) for bound in bounds]
    assert own == [
        f'xswe_request_seconds_bucket{{le="{bound}",path="/a"}} {count}.0'
        for bound, count in zip(bounds, counts, strict=True)
    ]
    assert {"xswe_texts_total 7.0", "xswe_busy 3.0", "xswe_buffered_bytes 4096.0"} <= set(lines)


def test_systemd_hands_one_socket_over_and_is_told_the_state(monkeypatch, tmp_path):
    for name in ("LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    assert systemd.handed_over() is None
    with socket.socket() as given:
        monkeypatch.setattr(systemd, "_FIRST_SOCKET", os.dup(given.fileno()))
        monkeypatch.setenv("LISTEN_FDS", "1")
        assert systemd.handed_over() is None
        monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))
        assert systemd.handed_over() is None  # of another process
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        with systemd.handed_over() as found:
            assert found.fileno() == systemd._FIRST_SOCKET
    for count, refused_here in (("0", False), ("2", True)):
        monkeypatch.setenv("LISTEN_FDS", count)
        if refused_here:
            with pytest.raises(ConfigError, match="systemd passed 2 sockets"):
                systemd.handed_over()
        else:
            assert systemd.handed_over() is None
    systemd.notify("READY=1")  # nobody asked
    for address, name in (
        (str(tmp_path / "s"), str(tmp_path / "s")),
        (f"\0xswe-{os.getpid()}", f"@xswe-{os.getpid()}"),
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(address)
            monkeypatch.setenv("NOTIFY_SOCKET", name)
            systemd.notify("READY=1")
            assert listener.recv(99) == b"READY=1"


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("port", 0),
        ("max_bytes", 1),
        ("max_texts", 1),
        ("max_characters", 1),
        ("max_connections", 1),
        ("waiting", 1),
        ("max_buffered", 4 << 20),
    ],
)
def test_settings_have_a_least_value(name, least):
    assert getattr(ServeConfig(**{name: least}), name) == least
    with pytest.raises(ConfigError, match=f"^{name}={least - 1}: "):
        ServeConfig(**{name: least - 1})


def test_settings_that_are_possible_and_not():
    assert ServeConfig(port=65535, seconds=0.1, api_key="a", origins=("*", "https://a")).workers >= 1
    assert ServeConfig(threads=3).workers == 3
    for wrong in (
        {"port": 65536},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"api_key": "ü"},
        {"api_key": ""},
        {"log": "x"},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            ServeConfig(**wrong)
    loopback = {"127.0.0.1", "localhost", "::1", "[::1]"}
    assert ServeConfig().names == loopback
    assert ServeConfig(hosts=("A.example",)).names == loopback | {"a.example"}
    assert ServeConfig(hosts=("a", "*")).names == frozenset()
    assert ServeConfig(host="0.0.0.0").names == frozenset()
    assert ServeConfig(host="0.0.0.0", hosts=("a",)).names == loopback | {"0.0.0.0", "a"}


def test_texts_may_have_the_most_and_none_more():
    config = ServeConfig(max_texts=2, max_characters=3)
    for fits in ("abc", ["abc", "abc"], [], ""):
        check_texts(fits, config, "input")
    for wrong, message, param in (
        ("abcd", "input has 4 characters: send at most 3", "input"),
        (["a"] * 3, "input has 3 texts: send at most 2", "input"),
        (["abc", "abcde"], "input[1] has 5 characters: send at most 3", "input[1]"),
    ):
        with pytest.raises(Refused) as raised:
            check_texts(wrong, config, "input")
        assert (raised.value.status, str(raised.value), raised.value.param) == (400, message, param)
    check_model("a", ("b", "a"))
    check_model("c", ("b", "*"))
    with pytest.raises(Refused, match=r"the model 'c' does not exist: ask for 'b', or serve with aliases=\[c\]") as raised:
        check_model("c", ("b", "a"))
    assert (raised.value.status, raised.value.code) == (404, "model_not_found")


def test_a_list_takes_all_parameters_of_its_name_and_a_field_the_last():
    pairs = [("query", "a"), ("query", "b"), ("languages", "en"), ("languages", "de"), ("k", "7")]
    found = from_query(m.SearchRequest, pairs)
    assert (found.query, found.languages, found.k) == ("b", ["en", "de"], 7)


def test_the_description_of_an_operation():
    operations = [
        Operation("/search", m.SearchRequest, m.Found, "find", True),
        Operation("/mine", m.MineRequest, "text/plain; charset=utf-8", "mine"),
        Operation(MODEL, None, "application/json", "one"),
        Operation("/healthz", None, "text/plain; charset=utf-8", "lives"),
    ]
    plain = describe(operations, False)
    paths = plain["paths"]
    assert {path: sorted(how) for path, how in paths.items()} == {
        "/search": ["get", "post"],
        "/mine": ["post"],
        MODEL: ["get"],
        "/healthz": ["get"],
    }
    faults = {"400", "401", "404", "413", "415", "429", "503"}
    assert set(paths["/search"]["get"]["responses"]) == set(paths["/mine"]["post"]["responses"]) == {"200"} | faults
    assert (set(paths[MODEL]["get"]["responses"]), set(paths["/healthz"]["get"]["responses"])) == ({"200", "404"}, {"200"})
    assert paths["/healthz"]["get"] == {
        "summary": "lives",
        "responses": {"200": {"description": "the result", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    }
    (name,) = paths[MODEL]["get"]["parameters"]
    assert (name["name"], name["in"], name["required"]) == ("model", "path", True)
    reference = {"application/json": {"schema": {"$ref": "#/components/schemas/SearchRequest"}}}
    assert paths["/search"]["post"]["requestBody"] == {"required": True, "content": reference}
    assert "requestBody" not in paths["/search"]["get"]
    fields = {one["name"]: one for one in paths["/search"]["get"]["parameters"]}
    assert {name for name, one in fields.items() if one["required"]} == {"query"}
    assert set(fields) == set(m.SearchRequest.__struct_fields__)
    assert "security" not in plain
    assert plain["openapi"] == "3.1.0"
    keyed = describe(operations, True)
    assert (keyed["security"], keyed["paths"]) == ([{"key": []}], paths)
    assert keyed["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}


def segment(language, text, **more):
    return m.Segment(text=text, language=language, **more)


def test_ticked_units_are_written_as_a_table(monkeypatch):
    units = [
        [segment("de", "Zug", note="n"), segment("en", "train", note="n"), segment("de", "Bahn", note="o")],
        [segment("xx", " "), segment("", "=1")],
        [segment("en", "\t")],
    ]
    table = service.export(m.ExportRequest(units=units, format="tsv")).decode()
    assert table == "en\tde\ttext\tnote\ntrain\tZug | Bahn\t\tn o\n\t\t'=1\t\n"
    for most, fits in ((12, True), (11, False)):  # four segments in three columns
        monkeypatch.setattr(service, "_MAX_PAIRS", most)
        if fits:
            assert service.export(m.ExportRequest(units=units, format="tsv"))
        else:
            with pytest.raises(Refused, match="a table of 2 units in 3 languages: send fewer"):
                service.export(m.ExportRequest(units=units, format="tsv"))


def test_the_parts_of_a_body_are_estimated():
    body = json.dumps({"a": ['x"y', "z"], "b": [[]] * 9}).encode()
    quotes = body.count(b'"') - 1
    assert service._parts(body, m.SearchRequest) == quotes
    assert service._parts(body, m.ExportRequest) == max(quotes, 11)
    assert service._parts(b"[[[", m.ExportRequest) == 3
    assert service._parts(b"[[[", m.SearchRequest) == 0


@pytest.mark.parametrize("text", ["The last train's gone.", "猫が魚を食べた。", "don't-stop 12,5 %", "", "   ", "Ünïcödé"])
def test_words_of_a_text_add_up_to_its_vector(mini, text):
    words, vectors = service.explained(mini, text)
    assert vectors.sum(0) == pytest.approx(mini.encode([text])[0], abs=1e-5)
    for word, start, end in words:
        assert word == text[start:end]
        assert word.strip() == word != ""
    starts = [start for _, start, _ in words]
    assert starts == sorted(starts)
    assert len(vectors) == len(words)
    assert vectors.dtype == np.float32


def test_pieces_are_joined_to_words_but_for_punctuation_and_characters():
    text = "ab,猫犬 c"
    #      0123 4 5 6
    pieces = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (6, 7)]
    starts, ends = map(list, zip(*pieces, strict=True))
    assert [service._continues_word(text, starts, ends, k) for k in range(1, 6)] == [True, False, False, False, False]
    assert service._continues_word("ab", [0, 0], [1, 1], 1)  # two pieces of one character
    assert not service._continues_word("a b", [0, 2], [1, 3], 1)


@pytest.mark.parametrize("lines", [49, 50])
def test_a_threshold_is_estimated_from_fifty_lines_on(mini, sample, lines):
    request = m.MineRequest(source=sample["en"][:lines], target=sample["de"][: lines + 3])
    found = service.mine_lines(mini, request)
    assert found.languages == ["en", "de"]
    assert (found.note == "too few lines to estimate a threshold: set it yourself") == (lines < 50)
    assert [pair.score for pair in found.pairs] == sorted((pair.score for pair in found.pairs), reverse=True)
    for pair in found.pairs:
        assert (pair.source, pair.target) == (request.source[pair.source_line - 1], request.target[pair.target_line - 1])
        assert pair.score == round(pair.score, 4)
    if lines < 50:
        assert found.threshold is None
