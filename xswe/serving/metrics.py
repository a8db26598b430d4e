"""Counts for Prometheus."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from xswe.serving.messages import MODEL

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
_MODELS = MODEL.partition("{")[0]


class Metrics:
    """The metrics of an application, in its own registry; unknown paths are counted together as ``other``."""

    def __init__(self, paths: set[str], busy: Callable[[], float], buffered: Callable[[], float]) -> None:
        self._paths, self._registry, self._children = paths, CollectorRegistry(), functools.cache(self._labelled)
        own: Any = {"namespace": "xswe", "registry": self._registry}
        self._requests = Counter("requests", "Requests answered.", ("path", "status"), **own)
        self._seconds = Histogram("request_seconds", "Seconds to an answer.", ("path",), buckets=_BOUNDS, **own)
        self.texts = Counter("texts", "Texts encoded for /v1/embeddings.", **own)
        Gauge("busy", "Requests on threads, or waiting for one.", **own).set_function(busy)
        Gauge("buffered_bytes", "Bytes of requests and answers, of max_buffered.", **own).set_function(buffered)
        ProcessCollector(registry=self._registry)

    def add(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        if path not in self._paths:
            path = MODEL if path.startswith(_MODELS) else "other"
        requests, durations = self._children(path, status)
        requests.inc()
        durations.observe(seconds)

    def _labelled(self, path: str, status: int) -> tuple[Counter, Histogram]:
        return self._requests.labels(path, status), self._seconds.labels(path)

    def render(self) -> bytes:
        """Return the metrics in Prometheus's text format."""
        return generate_latest(self._registry)
