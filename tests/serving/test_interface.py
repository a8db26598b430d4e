"""What programs ask: OpenAI's interface, search, phrases, comparison, mining, exports."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

import xswe
from tests.conftest import SAMPLE
from tests.serving.conftest import HOSTILE, SERVERS, served_by
from xswe.serving.messages import from_query

XML = "{http://www.w3.org/XML/1998/namespace}lang"
TEXTS = ["A cat sleeps.", "猫が寝ている。", " ", "Der Zug hat Verspätung. " * 200]


@pytest.fixture(scope="module", params=["in process", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS)])
def client(request, in_process, corpora, tmp_path_factory):
    """One who asks the application itself, and through servers."""
    if request.param == "in process":
        yield in_process
        return
    with served_by(request.param, tmp_path_factory.mktemp("served"), corpora) as server:
        import httpx2

        with httpx2.Client(base_url=server.address, timeout=60) as real:
            yield real


def post(client, path, **body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_vectors_are_those_of_the_model(client, mini):
    want = mini.encode(TEXTS)
    found = post(client, "/v1/embeddings", input=TEXTS, model="mini")
    assert np.array_equal(np.array([one["embedding"] for one in found["data"]], np.float32), want)
    assert [one["index"] for one in found["data"]] == [0, 1, 2, 3]
    tokens = len(mini.units.bags(TEXTS).ids)
    assert found["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    packed = post(client, "/v1/embeddings", input=TEXTS, encoding_format="base64")
    numbers = [np.frombuffer(base64.b64decode(one["embedding"]), "<f4") for one in packed["data"]]
    assert np.array_equal(np.stack(numbers), want)


def test_what_is_null_is_as_if_it_were_left_out(client):
    """Clients that send all fields send these so."""
    nothing = dict.fromkeys(("model", "encoding_format", "dimensions", "user"))
    assert post(client, "/v1/embeddings", input="a", **nothing) == post(client, "/v1/embeddings", input="a")


def test_fewer_dimensions_have_norm_one(client, mini):
    vector = np.array(post(client, "/v1/embeddings", input="A cat sleeps.", dimensions=64)["data"][0]["embedding"])
    want = mini.encode("A cat sleeps.")[:64]
    assert np.allclose(vector, want / np.linalg.norm(want), atol=1e-6)
    assert client.post("/v1/embeddings", json={"input": "a", "dimensions": 257}).status_code == 400


def test_an_ensemble_is_served_too(in_process, mini):
    from starlette.testclient import TestClient

    both, pair = xswe.types.Ensemble.of([mini, mini.truncate(64)]), {"left": ["A cat."], "right": ["Eine Katze."]}
    with TestClient(xswe.make_app(both, threads=1), base_url="http://localhost") as ensemble:
        found = post(ensemble, "/v1/embeddings", input=["A cat sleeps."])
        assert np.allclose(found["data"][0]["embedding"], both.encode("A cat sleeps."), atol=1e-6)
        compared, first = (post(asked, "/compare", **pair) for asked in (ensemble, in_process))
        assert compared.pop("cosines")[0][0] > 0.5
        first.pop("cosines")
        assert compared == first  # of its parts the first is explained


def test_a_model_is_called_as_its_folder_is(mini, tmp_path, monkeypatch):
    from starlette.testclient import TestClient

    mini.truncate(8).save(tmp_path / "cats")
    monkeypatch.chdir(tmp_path / "cats")
    for given in (tmp_path / "cats", "."):
        with TestClient(xswe.make_app(given, threads=1), base_url="http://localhost") as client:
            assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["cats"]


@pytest.mark.slow
def test_the_application_needs_no_uvicorn():
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('uvicorn', 'httptools', 'uvloop')))\n"
        "import xswe\n"
        "from xswe.errors import DependencyError\n"
        "assert callable(xswe.make_app('mini'))\n"
        "try:\n"
        "    xswe.serve('mini', port=0)\n"
        "except DependencyError as error:\n"
        "    assert 'uvicorn' in str(error) and 'xswe[serve]' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def refusal(answer):
    found = answer.json()["error"]
    assert found["message"]
    return answer.status_code, found["type"], found["param"], found["code"]


@pytest.mark.parametrize(
    ("asked", "status", "param", "code"),
    [
        ({}, 400, "input", "missing_required_parameter"),
        ({"input": []}, 400, "input", "empty_array"),
        ({"input": ""}, 400, "input", "empty_string"),
        ({"input": ["a", ""]}, 400, "input[1]", "empty_string"),
        ({"input": 1}, 400, "input", "invalid_type"),
        ({"input": [1, 2]}, 400, "input[0]", "invalid_type"),
        ({"input": [[1, 2]]}, 400, "input[0]", "invalid_type"),
        ({"input": ["a"] * 20_001}, 400, "input", "array_above_max_length"),
        ({"input": ["a", "a" * 100_001]}, 400, "input[1]", "string_above_max_length"),
        ({"input": "a" * 100_001}, 400, "input", "string_above_max_length"),
        ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format", "invalid_value"),
        ({"input": "a", "dimensions": 0}, 400, "dimensions", "integer_below_min_value"),
        ({"input": "a", "dimensions": 257}, 400, "dimensions", "integer_above_max_value"),
        ({"input": "a", "dimensions": "64"}, 400, "dimensions", "invalid_type"),
        ({"input": "a", "model": "gpt-4"}, 404, "model", "model_not_found"),
    ],
)
def test_what_cannot_be_encoded_is_refused_as_openai_does(client, asked, status, param, code):
    answer = client.post("/v1/embeddings", json=asked)
    assert refusal(answer) == (status, "invalid_request_error", param, code)


def test_what_is_not_there_is_not_found(client):
    kind = "invalid_request_error"
    assert refusal(client.get("/v1/chat")) == (404, kind, None, "unknown_url")
    for path in ("/search", "/phrases"):
        for query in ("snow", "\u202e\u2066"):  # also where there is nothing to look for
            answer = client.get(path, params={"query": query, "corpora": ["memory.tmx", "nope"]})
            assert refusal(answer) == (404, kind, "corpora", "corpus_not_found")
            assert "'nope'" in answer.json()["error"]["message"]
    for method, path, allowed in (("GET", "/v1/embeddings", {"POST"}), ("POST", "/v1/models", {"GET", "HEAD"})):
        answer = client.request(method, path)
        assert refusal(answer) == (405, kind, None, "method_not_supported")
        assert set(answer.headers["allow"].split(", ")) == allowed
    assert refusal(client.get("/search", params={"query": "snow", "k": "0"}))[2:] == ("k", "integer_below_min_value")
    misspelt = {"query": "snow", "language": "de"}
    for answer in (client.get("/search", params=misspelt), client.post("/search", json=misspelt)):
        assert refusal(answer) == (400, kind, "language", "unknown_parameter")
    assert refusal(client.post("/search", json={"query": "a" * 100_001}))[2:] == ("query", "string_above_max_length")
    units = client.post("/export", json={"format": "tmx", "units": [[{"language": "en"}]]})
    assert refusal(units)[2:] == ("units[0][0].text", "missing_required_parameter")


def test_search_finds_the_nearest_of_each_language(client):
    found = post(client, "/search", query="Snow slides off the temple roof every few minutes.", k=2)
    assert [hit["passage"]["language"] for hit in found["hits"]] == ["en", "en", "de", "de", "zh", "zh", "ja", "ja"]
    best = {hit["passage"]["language"]: hit for hit in found["hits"][::2]}
    assert {hit["passage"]["line"] for hit in best.values()} == {best["en"]["passage"]["line"]}
    assert {other["language"] for other in best["ja"]["translations"]} == {"en", "de", "zh"}
    by_address = client.get("/search", params={"query": "temple", "k": "1", "languages": ["de", "ja"]}).json()
    assert [hit["passage"]["language"] for hit in by_address["hits"]] == ["de", "ja"]
    assert client.head("/search", params={"query": "temple"}).status_code == 200
    own = client.get("/search", params={"query": "temple", "corpora": "manual.ja.txt"}).json()["hits"]
    assert own
    assert {hit["passage"]["corpus"] for hit in own} == {"manual.ja.txt"}


def test_every_list_of_a_message_is_one_in_an_address():
    class Asked(msgspec.Struct):
        numbers: list[int]
        name: str = ""
        k: int = 1

    pairs = [("numbers", "3"), ("name", "a"), ("numbers", "4"), ("name", "b"), ("k", "7")]
    assert from_query(Asked, pairs) == Asked([3, 4], "b", 7)
    assert from_query(Asked, [("numbers", "3")]) == Asked([3])
    with pytest.raises(msgspec.ValidationError, match="numbers"):
        from_query(Asked, [("k", "7")])


def test_the_sentences_of_a_small_corpus_are_found_beside_a_large_one(mini, tmp_path):
    names = [str(tmp_path / name) for name in ("large.en.txt", "small.en.txt")]
    lines = [f"The train {number} is late." for number in range(300)]
    for name, own in zip(names, (lines, ["A cat sleeps.", "Snow falls.", "Our train waits."]), strict=True):
        Path(name).write_text("\n".join(own) + "\n", "utf-8")
    from starlette.testclient import TestClient

    app = xswe.make_app(mini, names, threads=1, keep=False)
    with TestClient(app, base_url="http://localhost") as client:
        found = post(client, "/search", query="The train is late.", k=2, corpora=["small.en.txt"])["hits"]
        every = post(client, "/search", query="The train is late.", k=303)["hits"]
    expected = [hit for hit in every if hit["passage"]["corpus"] == "small.en.txt"]
    assert found == expected[:2]
    assert found[0]["passage"]["text"] == "Our train waits."


@pytest.mark.parametrize(
    ("query", "forms"),
    [("snow", {"de": "Schnee", "zh": "雪", "ja": "雪"}), ("電車", {"en": "train"}), ("Schnee", {"en": "snow"})],
)
def test_phrases_are_found_in_every_language(client, query, forms):
    found = post(client, "/phrases", query=query)
    for language, form in forms.items():
        own = [variant for variant in found["variants"] if variant["language"] == language]
        assert any(form.lower() in " ".join([variant["text"], *variant["forms"]]).lower() for variant in own[:3]), own
        for variant in own:
            assert variant["count"] >= len(variant["lines"]) > 0
            for line in variant["lines"]:
                passage = line["passage"]
                (start, end), *_ = passage["spans"]
                assert passage["text"][start:end].strip()


def test_the_counterpart_is_marked_in_the_translation(client):
    found = post(client, "/phrases", query="snow", languages=["en"], k=1, lines=20)
    lines = found["variants"][0]["lines"]
    marked = [o for line in lines for o in line["translations"] if o["language"] == "ja" and "雪" in o["text"]]
    assert marked
    right = [o for o in marked if any("雪" in o["text"][a:b] for a, b in o["spans"])]
    assert len(right) >= 0.8 * len(marked)


def test_counts_are_those_of_the_corpus(client):
    found = post(client, "/phrases", query="snow", languages=["en"], k=3, corpora=["memory.tmx"])
    snow = next(variant for variant in found["variants"] if variant["text"].lower() == "snow")
    english = [line.split("\t")[0] for line in SAMPLE.read_text("utf-8").splitlines()[:1200]]
    assert not snow["more"]
    assert snow["count"] >= sum(len(re.findall(r"\bsnow\b", text, re.IGNORECASE)) for text in english)


def test_a_string_is_found_as_it_is_written(client, sample):
    found = post(client, "/phrases", query="SNOW", match="exact", languages=["en"], lines=1000)["variants"]
    assert [form["text"] for form in found] == ["snow"]
    assert found[0]["count"] == len(found[0]["lines"])
    assert found[0]["count"] == sum(len(re.findall(r"\bsnow\b", text, re.IGNORECASE)) for text in sample["en"])
    for line in found[0]["lines"]:
        (start, end), *_ = line["passage"]["spans"]
        assert line["passage"]["text"][start:end].lower() == "snow"
    others = [other for line in found[0]["lines"] for other in line["translations"] if other["language"] == "ja"]
    assert any("雪" in other["text"][a:b] for other in others for a, b in other["spans"])
    own = post(client, "/phrases", query="雪", match="exact", corpora=["manual.ja.txt"])["variants"]
    assert {line["passage"]["corpus"] for form in own for line in form["lines"]} == {"manual.ja.txt"}
    by_address = client.get("/phrases", params={"query": "templ", "match": "fuzzy", "languages": "en"}).json()["variants"]
    assert [(form["text"], form["score"]) for form in by_address] == [("temple", 0.8)]
    assert post(client, "/phrases", query="templ", match="exact")["variants"] == []
    long = client.post("/phrases", json={"query": "a" * 65, "match": "fuzzy"})
    assert refusal(long)[2:] == ("query", "string_above_max_length")


def test_phrases_are_shown_as_the_corpus_writes_them(bare):
    english = ["Station closed.", "Station open.", "We see the station.", "STATION", "The station is old."]
    japanese = ["プリンターを買う", "このプリンターは新しい", "印刷機とプリンター", "列車は遅れた", "その列車に乗る"]
    found = post(bare, "/phrases", query="Bahnhof", passages=english, k=1)
    assert found["variants"][0]["text"] == "station"
    found = post(bare, "/phrases", query="train", passages=japanese, k=1)
    assert found["variants"][0]["text"] == "列車"
    found = post(bare, "/phrases", query="print", passages=japanese, k=5, min_score=0.0)
    runs = [run for variant in found["variants"] for run in re.findall("[ァ-ヺー]+", variant["text"])]
    assert set(runs) <= {"プリンター"}


def test_phrases_in_passages_of_the_request(bare):
    found = post(bare, "/phrases", query="late train", passages=["Der Zug hat Verspätung.", "Wir kaufen Brot."], k=1)
    assert found["variants"][0]["lines"][0]["passage"]["line"] == 1


def test_nothing_known_finds_nothing(client):
    for path in ("/search", "/phrases"):
        for query in ("", " ", "\u202e\u2066", "￿"):
            found = post(client, path, query=query)
            assert found.get("hits", found.get("variants")) == []


def test_shares_add_up_to_the_cosine(client, mini):
    left, right = ["A cat sleeps on the roof.", "We buy bread (cheaply)!"], ["屋根の上で猫が寝ている。", "Wir kaufen Brot."]
    for i in (0, 1):
        for j in (0, 1):
            found = post(client, "/compare", left=left, right=right, pair=[i, j])
            assert np.allclose(found["cosines"], mini.similarity(left, right), atol=1e-4)
            assert np.isclose(np.sum(found["shares"]), found["cosines"][i][j], atol=2e-3)
            assert np.isclose(sum(word["share"] for word in found["left"]), found["cosines"][i][j], atol=2e-3)
            for word in found["left"]:
                assert left[i][word["start"] : word["end"]] == word["text"]
    found = post(client, "/compare", left=left, right=right)
    linked = {(found["left"][a]["text"], found["right"][b]["text"]) for a, b in found["links"]}
    assert {("cat", "猫"), ("roof", "屋根")} <= linked
    long = client.post("/compare", json={"left": ["a " * 1001], "right": ["b " * 1000]})
    assert (long.status_code, long.json()["error"]["param"]) == (400, "pair")
    empty = post(client, "/compare", left=[""], right=["a"])
    assert empty["cosines"] == [[0.0]]
    assert empty["left"] == []


def test_mining_gives_all_pairs_and_a_threshold(client, sample):
    few = post(client, "/mine", source=["The train is late.", "A cat sleeps."], target=["Eine Katze schläft.", "Brot."])
    assert few["pairs"][0]["target"] == "Eine Katze schläft."
    assert (few["pairs"][0]["source_line"], few["pairs"][0]["target_line"]) == (2, 1)
    assert few["threshold"] is None
    many = post(client, "/mine", source=sample["en"][:300], target=sample["ja"][100:400])
    assert many["threshold"] is not None
    assert many["languages"] == ["en", "ja"]
    assert post(client, "/mine", source=["The cat is here.", "猫"], target=["The dog is here."])["languages"] == []
    kept = [pair for pair in many["pairs"] if pair["score"] >= many["threshold"]]
    right = [pair for pair in kept if pair["source_line"] == pair["target_line"] + 100]
    assert len(right) > 0.9 * len(kept) > 150


UNITS = [
    [{"language": "en", "text": f"a <b> & {HOSTILE}\0"}, {"language": "ja", "text": "猫\n犬", "note": "n\t1"}],
    [
        {"language": "de", "text": "Zug", "context": "Der Zug."},
        {"language": "de", "text": "Bahn"},
        {"language": '"><x', "text": "y"},
    ],
    [],
]


def test_exports_are_what_they_say(client):
    def export(kind):
        answer = client.post("/export", json={"format": kind, "units": UNITS})
        assert answer.status_code == 200, answer.text
        assert f'filename="xswe.{kind}"' in answer.headers["content-disposition"]
        return answer.content

    memory = ElementTree.parse(BytesIO(export("tmx"))).getroot()
    units = [[(v.get(XML), v.findtext("seg")) for v in unit.iter("tuv")] for unit in memory.iter("tu")]
    assert units[0][0][1].startswith("a <b> & <script>")
    assert [code for code, _ in units[1]] == ["de", "de", '"><x']
    base = ElementTree.parse(BytesIO(export("tbx"))).getroot()
    assert [term.text for term in base.iter("term")][1:] == ["猫 犬", "Zug", "Bahn", "y"]
    assert [one.text for one in base.iter("descrip")] == ["Der Zug."]
    table = export("tsv").decode().splitlines()
    assert table[0].split("\t") == ["en", "de", "ja", '">\x3cx', "note"] or len(table[0].split("\t")) == 5
    assert len(table) == 3


@pytest.mark.parametrize(
    "text",
    [
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-2+3",
        "@SUM(A1)",
        "\t=1+1",
        "\r=1+1",
        '"=1+1"',
        " \n+1",
        "＝1+1",
        "＋1",
        "－1",
        "＠SUM(A1)",
    ],
)
def test_no_cell_of_a_table_is_run(client, text):
    unit = [{"language": "en", "text": text, "note": text}, {"language": text, "text": "Zug - 1 = 0"}]
    table = client.post("/export", json={"format": "tsv", "units": [unit]}).content.decode()
    assert table.count("\n") == 2
    cells = [cell for line in table.splitlines() for cell in line.split("\t")]
    assert [cell for cell in cells if cell not in ("en", "note", "Zug - 1 = 0")] == 3 * ["'" + re.sub(r"\s", " ", text)]


def test_a_table_has_no_more_languages_than_can_be_read(client):
    units = [[{"language": f"x{number}", "text": "a"}] for number in range(1001)]
    for few, status in ((units[:30], 200), (units, 400)):
        assert client.post("/export", json={"format": "tsv", "units": few}).status_code == status
    assert client.post("/export", json={"format": "tmx", "units": units}).status_code == 200


def test_what_is_exported_is_read_again(client, tmp_path):
    units = [[{"language": "en", "text": "cat"}, {"language": "de", "text": "Katze"}, {"language": "ja", "text": "猫"}]]
    (tmp_path / "out.tmx").write_bytes(client.post("/export", json={"format": "tmx", "units": units}).content)
    from xswe.bitext.memories import read_memory

    assert list(read_memory(tmp_path / "out.tmx")) == [{"en": "cat", "de": "Katze", "ja": "猫"}]


def test_the_description_names_what_there_is(client):
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            if method == "get" and all(kind["in"] == "path" for kind in one.get("parameters", ())):
                assert client.get(path.format(model="mini")).status_code == 200
            else:
                assert client.request(method, path).status_code in (400, 415)
            for answer in one["responses"].values():
                for content in answer["content"].values():
                    if reference := content["schema"].get("$ref"):
                        assert reference.rpartition("/")[2] in document["components"]["schemas"]
    forms = document["components"]["schemas"]["Embedding"]["properties"]["embedding"]["anyOf"]
    assert {"type": "string", "contentEncoding": "base64"} in forms
    spec = pytest.importorskip("openapi_spec_validator", reason="the schema of OpenAPI is not installed")
    spec.validate(document)


def test_metrics_count(client):
    from prometheus_client.parser import text_string_to_metric_families

    def told():
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=")
        families = text_string_to_metric_families(answer.text)
        return {(one.name, *sorted(one.labels.items())): one.value for family in families for one in family.samples}

    before = told()
    post(client, "/v1/embeddings", input=["a", "b"])
    client.get("/no/such/path")
    client.get("/v1/models/other")
    after = told()

    def more(name, **labels):
        return after[name, *sorted(labels.items())] - before.get((name, *sorted(labels.items())), 0)

    assert more("xswe_texts_total") == 2
    assert more("xswe_requests_total", path="other", status="404") == 1
    assert more("xswe_requests_total", path="/v1/models/{model}", status="404") == 1
    assert more("xswe_requests_total", path="/v1/embeddings", status="200") == 1
    assert more("xswe_request_seconds_bucket", path="/v1/embeddings", le="+Inf") == 1
    assert more("xswe_request_seconds_count", path="/v1/embeddings") == 1
    assert after["xswe_busy",] == 0
    assert after["xswe_buffered_bytes",] >= 0
    assert after["process_resident_memory_bytes",] > 1e7
    assert not any("/no/such" in str(key) for key in after)
