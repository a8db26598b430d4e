"""A language with blanks between its words needs a line in the table of languages, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.corpus.cleaning import _classes, _own
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.model.card import _examples
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES, Language, in_script
from xswe.text.tokenizers import train_subwords
from xswe.text.units import SubwordUnits
from xswe.training.config import TrainConfig, check_settings

TEXTS = ["The cat is small.", "The dog is big.", "고양이는 작다.", "개는 크다.", "고양이는 크다."]


@pytest.fixture(autouse=True)
def korean(monkeypatch):
    monkeypatch.setitem(LANGUAGES, "ko", Language("ko", "Korean", "hangul", "kor", "kor-Hang"))


def test_its_script_tells_its_words():
    assert in_script("고양이는 작다", "ko")
    assert not in_script("cat", "ko")
    assert not in_script("猫は小さい", "ko")
    assert not in_script("고양이", "en")
    classes = _classes(Texts.of(["고양이는 K-pop 작다"]))
    assert _own(classes, "ko").tolist() == [6]
    assert _own(classes, "en").tolist() == [4]


def test_a_model_encodes_it_and_lists_its_words():
    units = SubwordUnits(train_subwords(TEXTS * 20, ("en", "ko"), 60), "subwords", ("en", "ko"))
    model = StaticModel(units, np.eye(len(units.tokens), 64, dtype=np.float32))
    assert model.encode(TEXTS).any(axis=1).all()
    korean = model.words("ko")
    assert korean
    assert not set(korean) & set(model.words("en"))
    assert _examples(("ko",)) == '["…"]'


def test_the_teacher_in_the_package_does_not_read_it(fake_teacher):
    fake_teacher.name = "mini"
    with pytest.raises(ConfigError, match="teacher=mini does not read ko: set teacher=none"):
        check_settings(TrainConfig(languages=("en", "ko")), fake_teacher, None)
