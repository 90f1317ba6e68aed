"""Reading traces: whole, in pieces, and damaged."""

from pathlib import Path

import pytest

from engines.errors import EngineError
from engines.trace import read_events
from tests.engines.traces import device_trace, host_trace, span, write


@pytest.mark.parametrize("name", ["t.pt.trace.json", "t.pt.trace.json.gz"])
def test_every_complete_event_is_read_across_the_pieces(tmp_path: Path, name: str) -> None:
    events = [span(f"aten::op_{number} [{{,", 10.0 * number, 5.0, "cpu_op") for number in range(3000)]
    read = list(read_events(write(tmp_path / name, events)))
    assert [event.name for event in read] == [event["name"] for event in events]
    assert read[7].end == 75.0
    assert read[7].correlation is None


def test_launches_and_kernels_share_a_correlation(tmp_path: Path) -> None:
    read = list(read_events(write(tmp_path / "t.json", device_trace(1))))
    launched = {event.correlation for event in read if event.category == "cuda_runtime"}
    assert launched == {event.correlation for event in read if event.category in ("kernel", "gpu_memcpy")}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-20],
        lambda whole: b"not gzip",
        lambda whole: b"",
    ],
)
def test_a_trace_that_is_cut_off_or_damaged_says_so(tmp_path: Path, spoil) -> None:
    path = write(tmp_path / "t.json.gz", host_trace(40))
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(EngineError, match=r"t\.json\.gz cannot be read"):
        list(read_events(path))


def test_a_file_without_events_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"schemaVersion": 1}')
    with pytest.raises(EngineError, match="no list of traceEvents"):
        list(read_events(path))
