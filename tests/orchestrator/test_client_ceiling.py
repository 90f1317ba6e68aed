"""`doctor --client`: a real load process against the real null server."""

import re

import pytest

from jobs.replay.ceiling import ClientCost, Pour, measure_client
from orchestrator.cli import main
from orchestrator.client_ceiling import ceiling
from orchestrator.doctor import NOTE, OK


def test_the_ceiling_follows_from_a_measured_pour():
    *found, last = ceiling((Pour(streams=4, interval=0.01, chunks=20),))
    assert [finding.what for finding in found] == ["cores", "4 streams, 10 ms"]
    assert all(finding.state in (OK, NOTE) for finding in found)
    cost = float(re.search(r"([\d.]+) us of CPU a chunk", found[1].detail)[1])
    rate = float(re.search(r"([\d,]+) chunks/s", last.detail)[1].replace(",", ""))
    assert rate == pytest.approx(0.7e6 / cost, rel=0.1)
    streams = float(re.search(r"([\d,]+) streams at 20 ms", last.detail)[1].replace(",", ""))
    assert streams == pytest.approx(rate / 50, abs=1)


def test_every_chunk_of_every_stream_is_counted(tmp_path):
    cost = measure_client(Pour(streams=3, interval=0.005, chunks=7, tokens=4), tmp_path)
    assert isinstance(cost, ClientCost)
    assert cost.chunks == 21
    assert cost.us_per_chunk > 0
    assert cost.fixed_cpu_seconds > 0


def test_the_command_says_that_the_server_is_none(monkeypatch, capsys):
    small = (Pour(streams=2, interval=0.005, chunks=5),)
    monkeypatch.setattr("orchestrator.commands.doctor.ceiling", lambda: ceiling(small))
    assert main(["doctor", "--client"]) == 0
    printed = capsys.readouterr().out
    assert "null server" in printed
    assert "emulated" in printed
    assert "ceiling of one process" in printed
