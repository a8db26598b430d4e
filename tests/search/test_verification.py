"""The checks of an index's files: the limits of each, and what is said."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.errors import ModelError
from xswe.io.ragged import HEADER, GrowingArray
from xswe.search.verification import REBUILD, check_array, check_files, sums_of_files, verify_index


def test_an_array_has_as_many_rows_as_are_recorded(tmp_path):
    path = tmp_path / "a.npy"
    array = GrowingArray(path, np.float32, row=(3,))
    array.append(np.ones((5, 3)))
    array.close()
    for rows in (0, 4, 5):
        check_array(path, np.float32, (rows, 3))
    for header in (True, False):
        with pytest.raises(ModelError) as raised:
            check_array(path, np.float32, (6, 3), header)
        assert str(raised.value) == f"{path}: has {HEADER + 60} bytes, not {HEADER + 72}; {REBUILD}"
    with path.open("ab") as stream:
        stream.write(bytes(12))  # a row that the header does not know
    check_array(path, np.float32, (6, 3), header=False)
    with pytest.raises(ModelError, match=r"a\.npy: its header says 5 rows, not 6; restore"):
        check_array(path, np.float32, (6, 3))
    path.write_bytes(path.read_bytes()[: HEADER + 59])
    with pytest.raises(ModelError, match=f"has {HEADER + 59} bytes, not {HEADER + 60};"):
        check_array(path, np.float32, (5, 3))
    with pytest.raises(ModelError, match=r"b\.npy: .*; restore"):
        check_array(tmp_path / "b.npy", np.float32, (1, 3))


def test_an_index_that_is_what_was_written_says_so(tmp_path):
    folder = tmp_path / "a"
    index = xswe.index(xswe.load("mini"), ["a cat", "a dog", "a train"], folder=folder, threads=1)
    index.remove([1])
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md" and "sqlite" not in path.name]
    assert verify_index(folder) == f"{folder}: 2 sentences and {len(files)} files are what was written"
    with pytest.raises(ModelError) as raised:
        verify_index(tmp_path)
    assert str(raised.value) == f"{tmp_path}: no index; build one with search model= input= index=, or xswe.index"
    sums = sums_of_files(folder, folder / "model")
    assert "model/README.md" not in sums
    assert "model/model.safetensors" in sums
    check_files(folder, sums, "model")
    broken = folder / "model" / "config.json"
    broken.write_bytes(broken.read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"config\.json.*put back the model that the index was built with"):
        check_files(folder, sums, "model")
    check_files(folder, sums, "arrays")
    with pytest.raises(ModelError, match=r"^[^\n]*config\.json[^\n]*put back the model[^\n]*$"):
        verify_index(folder)
