"""Batches of other engines get the vectors that ``encode`` gives."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError
from xswe.model.encode_file import BatchEncoder

TEXTS = ["A cat sleeps.", None, "猫が寝ている。"]


@pytest.fixture(scope="module")
def expected():
    return xswe.load("mini").encode([text or "" for text in TEXTS])


def test_each_kind_of_batch_stays_what_it_is(expected):
    encode = BatchEncoder("mini", "body", "vector")
    found = encode({"body": TEXTS, "id": np.arange(3)})
    assert found["vector"].tobytes() == expected.tobytes()
    assert found["id"].tolist() == [0, 1, 2]
    arrow = pytest.importorskip("pyarrow")
    table = encode(arrow.table({"body": TEXTS, "id": [0, 1, 2]}))
    assert table.column_names == ["body", "id", "vector"]
    assert np.array(table["vector"].to_pylist(), np.float32).tobytes() == expected.tobytes()
    frame = pytest.importorskip("pandas").DataFrame({"body": TEXTS})
    assert np.stack(encode(frame)["vector"]).tobytes() == expected.tobytes()
    assert list(frame.columns) == ["body"]
    missing = encode(frame.assign(body=frame["body"].astype("string").where([True] + [False] * (len(frame) - 1))))
    assert [bool(vector.any()) for vector in missing["vector"]] == [True] + [False] * (len(frame) - 1)


def test_a_missing_column_is_named():
    with pytest.raises(ConfigError, match=r"text=text: there is no such column; there are body"):
        BatchEncoder("mini")({"body": TEXTS})
