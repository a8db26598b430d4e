"""The vectors of an index in other search engines: the same sentences are found, in the same order."""

from __future__ import annotations

import pytest

import xswe

QUERIES = ["late trains", "eine schlafende Katze", "我们买面包", "仕事を探す"]


@pytest.fixture(scope="module")
def index(sample, tmp_path_factory):
    made = xswe.index(xswe.load("mini"), sample["de"][:300], folder=tmp_path_factory.mktemp("bridges") / "index")
    made.remove([0, 17])  # numbers of sentences are no places from here on
    made.update([5], ["Der Zug nach Osaka hat Verspätung."])
    return made


@pytest.fixture(scope="module")
def truth(index):
    return [[hit.text for hit in hits] for hits in index.search(QUERIES, k=5)]


def test_faiss(index, truth):
    faiss = pytest.importorskip("faiss")
    other = faiss.IndexIDMap(faiss.IndexFlatIP(index.dim))
    other.add_with_ids(index.vectors(), index.rows)
    _, rows = other.search(index.model.encode(QUERIES), 5)
    assert [[index[row].text for row in some] for some in rows.tolist()] == truth


def test_lancedb(index, truth, tmp_path):
    lancedb = pytest.importorskip("lancedb")
    rows = ({"text": hit.text, "vector": vector} for hit, vector in zip(index, index.vectors(), strict=True))
    other = lancedb.connect(str(tmp_path)).create_table("sentences", list(rows))
    for query, wanted in zip(QUERIES, truth, strict=True):
        found = other.search(index.model.encode(query)).distance_type("dot").limit(5).to_list()
        assert [row["text"] for row in found] == wanted


def test_postgresql_with_pgvector(index, truth, tmp_path):
    pgserver, psycopg = pytest.importorskip("pgserver"), pytest.importorskip("psycopg")
    try:
        server = pgserver.get_server(tmp_path / "server")
    except Exception as error:  # the package has no server for this machine, or none may run here
        pytest.skip(f"PostgreSQL does not start here: {error}")
    try:
        rows = [(hit.text, str(vector)) for hit, vector in zip(index, index.vectors().tolist(), strict=True)]
        with psycopg.connect(server.get_uri(), autocommit=True) as other:
            other.execute(f"CREATE EXTENSION vector; CREATE TABLE sentences (text text, vector vector({index.dim}))")
            other.cursor().executemany("INSERT INTO sentences VALUES (%s, %s)", rows)
            near = "SELECT text FROM sentences ORDER BY vector <#> %s::vector LIMIT 5"
            for query, wanted in zip(QUERIES, truth, strict=True):
                found = other.execute(near, [str(index.model.encode(query).tolist())])
                assert [text for (text,) in found] == wanted
    finally:
        server.cleanup()


@pytest.mark.slow
def test_langchain(index, truth):
    documents = pytest.importorskip("langchain_core.documents")
    runnables = pytest.importorskip("langchain_core.runnables")

    def found(query):
        return [
            documents.Document(hit.text, id=str(hit.row), metadata=hit.metadata or {}) for hit in index.search(query, k=5)
        ]

    retriever = runnables.RunnableLambda(found)
    assert [[one.page_content for one in retriever.invoke(query)] for query in QUERIES] == truth
    assert [[one.page_content for one in some] for some in retriever.batch(QUERIES)] == truth  # on threads


@pytest.mark.slow
def test_llamaindex(index, truth):
    retrievers, schema = pytest.importorskip("llama_index.core.retrievers"), pytest.importorskip("llama_index.core.schema")

    class Nearest(retrievers.BaseRetriever):
        def _retrieve(self, query):
            hits = index.search(query.query_str, k=5)
            return [schema.NodeWithScore(node=schema.TextNode(text=hit.text), score=hit.score) for hit in hits]

    assert [[one.text for one in Nearest().retrieve(query)] for query in QUERIES] == truth
