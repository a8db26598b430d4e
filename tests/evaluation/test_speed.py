"""The speed of an encoder, by a clock that only it moves."""

from __future__ import annotations

import pytest

from xswe.corpus.cards import sample_sentences
from xswe.evaluation import speed
from xswe.evaluation.speed import sample_texts, sentences_per_second


class Slow:
    """An encoder that takes some seconds a call and a text; the first text it is given at all takes long."""

    def __init__(self, monkeypatch, call, text):
        self.now, self.call, self.text, self.calls = 0.0, call, text, []
        monkeypatch.setattr(speed.time, "perf_counter", lambda: self.now)

    def encode(self, texts):
        self.now += self.call + self.text * len(texts) + (0 if self.calls else 100)
        self.calls.append(list(texts))


def test_texts_are_in_the_languages_of_a_model_else_english():
    sides = sample_sentences()
    assert sample_texts(("de",)) == list(sides["de"])
    assert sample_texts(("ja", "xx", "en"))[:4] == [sides["en"][0], sides["ja"][0], sides["en"][1], sides["ja"][1]]
    assert sample_texts(("xx",)) == list(sides["en"])


def test_calls_grow_until_one_takes_long_enough(monkeypatch):
    encoder = Slow(monkeypatch, call=0.01, text=0.0001)
    assert sentences_per_second(encoder, ["a", "b", "c"], seconds=4.0) == pytest.approx(32768 / (0.01 + 3.2768))
    assert [len(call) for call in encoder.calls] == [256, 256, 2048, 16384, 32768]  # up to eight times as many
    assert encoder.calls[1][:4] == ["a", "b", "c", "a"]


def test_a_call_is_neither_longer_than_it_must_be_nor_without_end(monkeypatch):
    encoder = Slow(monkeypatch, call=0.0, text=0.001)
    assert sentences_per_second(encoder, ["a"], seconds=0.5) == pytest.approx(1000)
    assert [len(call) for call in encoder.calls] == [256, 256]  # half of the time is enough
    encoder = Slow(monkeypatch, call=0.0, text=0.001)
    sentences_per_second(encoder, ["a"], seconds=0.6)
    assert [len(call) for call in encoder.calls] == [256, 256, 512]  # twice as many at least
    encoder = Slow(monkeypatch, call=0.0, text=1e-9)
    assert sentences_per_second(encoder, ["a"], seconds=9.0) == pytest.approx(1e9, rel=1e-3)
    assert len(encoder.calls[-1]) == max(map(len, encoder.calls)) == 1_000_000
    encoder = Slow(monkeypatch, call=0.0, text=0.0)
    assert sentences_per_second(encoder, ["a"]) == pytest.approx(1_000_000 / 1e-9)
