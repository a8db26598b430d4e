"""The verb: a server that runs until it is interrupted, and says what is wrong before it works."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

import xswe
from xswe.errors import ConfigError


def test_it_serves_until_it_is_interrupted(corpora):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    command = [sys.executable, "-m", "xswe", "serve", f"corpora=[{corpora[2]}]", f"port={port}", "threads=1", "keep=false"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            deadline = time.monotonic() + 60
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/info", timeout=20) as answer:
                        info = json.load(answer)
                    break
                except OSError:
                    assert running.poll() is None, running.stderr.read()
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            assert info["corpora"] == ["manual.ja.txt"]
            assert "/" not in json.dumps(info)  # no path of this machine
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=20)
        finally:
            running.kill()
    assert running.returncode == 0, said
    assert f"http://127.0.0.1:{port}" in said[1]


def test_a_port_that_is_taken_is_told_at_once(mini):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        with pytest.raises(ConfigError, match="port="):
            xswe.serve(mini, ["missing.en-de.tsv"], port=one.getsockname()[1])
