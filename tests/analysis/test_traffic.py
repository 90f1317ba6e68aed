"""A fleet's traffic: files of every form and their errors, time held, and worth by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.errors import ResultsError
from analysis.fleet import fleet_value, interpolate
from analysis.fleet_table import fleet_section
from analysis.frame import Sweep, cells_frame
from analysis.recommendation import recommend
from analysis.traffic import fleet_load
from analysis.traffic_file import read_traffic

HOUR = 3600.0


def written(folder, text, name="traffic.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "time,running\n0,4\n60,8\n120,4\n",
        "\ufeffTimestamp;num_requests_running\n0;4\n60;8\n120;4\n",
        '"Time"\t"Value"\n1970-01-01 00:00:00\t4\n1970-01-01 00:01:00\t8\n1970-01-01T00:02:00Z\t4\n',
        "running,ts\n4,0\n8,60\n4,120\n\n",
    ],
)
def test_csv_in_the_usual_forms(tmp_path, text):
    (series,) = read_traffic(written(tmp_path, text))
    assert series.time.tolist() == [0.0, 60.0, 120.0]
    assert series.running.tolist() == [4.0, 8.0, 4.0]


def test_milliseconds_and_a_column_a_server(tmp_path):
    text = "time,a,b\n1700000000000,4,1\n1700000060000,8,\n1700000120000,4,3\n"
    first, second = read_traffic(written(tmp_path, text))
    assert (first.name, second.name) == ("a", "b")
    assert first.time.tolist() == [1.7e9, 1.7e9 + 60, 1.7e9 + 120]
    assert second.running.tolist() == [1.0, 3.0]  # an empty field is a gap, no zero


def query(*series):
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(series)}})


def test_prometheus_sums_the_ranks_of_a_server_and_no_servers(tmp_path):
    text = query(
        {"metric": {"instance": "a", "engine": "0"}, "values": [[0, "1"], [15, "2"]]},
        {"metric": {"instance": "a", "engine": "1"}, "values": [[0, "3"], [15, "NaN"]]},
        {"metric": {"instance": "b", "engine": "0"}, "values": [[0, "7"], [15, "8"]]},
    )
    first, second = read_traffic(written(tmp_path, text, "traffic.json"))
    assert (first.name, first.running.tolist()) == ("instance=a", [4.0, 2.0])
    assert (second.name, second.running.tolist()) == ("instance=b", [7.0, 8.0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it needs a line `time,running`"),
        ("a,b\n1,2\n", r"line 1: the header is 'a,b'; it needs one column of times"),
        ("time,running\n0,4\n60,four\n", r"traffic.csv, line 3: 'four' is no number of running requests"),
        ("time,running\n0,4\n60,-1\n", r"line 3: '-1' is no number"),
        ("time,running\n0,4\nyesterday,1\n", r"line 3: 'yesterday' is no time"),
        ("time,running\n0,4\n60\n", r"line 3: 1 columns, and the header has 2"),
        ("time,running\n0,4\n0,5\n", r"two samples at 0.000 s"),
        ("time,running\n0,4\n", "has 1 sample;"),
        ("{", r"line 1: this is no JSON"),
        ('{"data": {"resultType": "vector", "result": [1]}}', "it needs resultType matrix"),
        (query({"metric": {}, "values": [[0, "1"], [1]]}), r"series 1, value 2: \[1\] is no \[time, value\]"),
        (query({"metric": {}, "values": [[0, "-1"], [1, "1"]]}), "less than none"),
    ],
)
def test_bad_files_name_the_place(tmp_path, text, message):
    with pytest.raises(ResultsError, match=message):
        read_traffic(written(tmp_path, text))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ResultsError, match="cannot be read"):
        read_traffic(tmp_path / "none.csv")


def test_samples_hold_until_the_next_one_and_a_gap_is_no_time(tmp_path):
    text = "time,running\n0,4\n60,8\n120,0\n1000,8\n1060,8\n"
    load = fleet_load(read_traffic(written(tmp_path, text)), hold=100)
    assert dict(zip(load.running, load.seconds, strict=True)) == {0.0: 100.0, 4.0: 60.0, 8.0: 180.0}
    assert (load.gaps, load.span, load.servers) == (780.0, 1120.0, 1.0)
    assert load.share(4, 8) == pytest.approx(60 / 240)  # of the time with requests
    assert fleet_load(read_traffic(written(tmp_path, text))).hold == 300.0  # five median steps


def test_a_series_that_sums_several_servers_is_shared_over_them(tmp_path):
    load = fleet_load(read_traffic(written(tmp_path, "time,running\n0,8\n60,16\n")), servers=4)
    assert dict(zip(load.running, load.seconds, strict=True)) == {2.0: 240.0, 4.0: 240.0}
    assert load.servers == pytest.approx(4.0)


def test_values_between_levels_and_none_beside_them():
    levels = np.array([1.0, 4.0, 16.0])
    values = np.log(np.array([[2.0], [math.nan], [0.5]]))
    found = interpolate(np.array([0.5, 1.0, 4.0, 16.0, 17.0]), levels, values)[:, 0]
    assert found[1:4].tolist() == pytest.approx([math.log(2), 0.0, -math.log(2)], abs=1e-12)
    assert np.isnan(found[[0, 4]]).all()


@pytest.fixture
def sweep(make_sweep, true_arm):
    """Baseline 1000 C^0.7 tokens/s; ratios 1.2 at C=4 and 0.8 at C=16; no noise, blocks alike."""
    arms = [true_arm(ratios={1: 1.5, 4: 1.2, 16: 0.8})]
    results = make_sweep(arms, blocks=3, noise=1e-9, block_effect=0.0)
    return Sweep(directory=Path("results/s"), plan={}, cells=cells_frame(results), results=results)


def traffic(tmp_path, *runs):
    """(hours, running requests), a sample a minute."""
    lines, clock = ["time,running"], 0
    for hours, running in runs:
        for _ in range(round(hours * 60)):
            lines.append(f"{clock},{running}")
            clock += 60
    return fleet_load(read_traffic(written(tmp_path, "\n".join(lines))))


def test_worth_by_hand(sweep, tmp_path):
    """Six hours each with 4, with 16, with none and with 100 running requests."""
    load = traffic(tmp_path, (6, 4), (6, 16), (6, 0), (6, 100))
    found = recommend(sweep)
    fleet = fleet_value(sweep, found, load)
    assert fleet.today == "tp1/none"
    rates = {4: 1000.0 * 4**0.7, 16: 1000.0 * 16**0.7}
    assert fleet.made == pytest.approx(6 * HOUR * (rates[4] + rates[16]), rel=1e-6)
    arm = next(row for row in fleet.rows if row.label == "tp1/ngram-k3")
    assert arm.gained.value == pytest.approx(6 * HOUR * (0.2 * rates[4] - 0.2 * rates[16]), rel=1e-6)
    assert arm.hours.value == pytest.approx(6 * (1 - 1 / 1.2) + 6 * (1 - 1 / 0.8), rel=1e-6)
    assert arm.ahead.value == pytest.approx(6 / 18)  # of the hours with requests
    assert arm.inside == pytest.approx(12 / 18)
    (best, _) = fleet.rows
    assert (best.label, best.proposal) == ("tp1/ngram by concurrency", True)
    assert best.gained.value == pytest.approx(6 * HOUR * 0.2 * rates[4], rel=1e-6)
    section = fleet_section(found, fleet, load, price=2.0, currency="EUR")
    row = section.frame.set_index("configuration").loc["tp1/ngram-k3"]
    assert row["money"] == pytest.approx(2.0 * arm.hours.value)
    assert any("33.3% of the time with requests no level was tried at" in note for note in section.notes)
    assert any("tp1/ngram-k3 33.3%, tp1/none 33.3%" in note for note in section.notes)


def test_another_arm_serves_today(sweep, tmp_path):
    load = traffic(tmp_path, (12, 4), (12, 16))
    found = recommend(sweep)
    fleet = fleet_value(sweep, found, load, today="tp1/ngram-k3")
    plain = next(row for row in fleet.rows if row.label == "tp1/none")
    gained = 1000.0 * (4**0.7 * (1.0 - 1.2) + 16**0.7 * (1.0 - 0.8))
    assert plain.gained.value == pytest.approx(12 * HOUR * gained, rel=1e-6)
    with pytest.raises(ResultsError, match=r"--today 'x' is no arm .*arms are tp1/ngram-k3, tp1/none"):
        fleet_value(sweep, found, load, today="x")
    with pytest.raises(ResultsError, match="no amount can be gained"):
        fleet_value(sweep, replace(found, objective="ttft_p95"), load)


def test_the_interval_covers_the_truth(make_sweep, true_arm, tmp_path):
    load, hits, found = traffic(tmp_path, (2, 4)), 0, None
    for seed in range(6):
        results = make_sweep([true_arm()], levels=(4,), blocks=4, noise=0.02, start=0.02, seed=seed)
        one = Sweep(directory=Path("s"), plan={}, cells=cells_frame(results), results=results)
        found = found or recommend(one)  # only its candidates count here
        (arm,) = (row for row in fleet_value(one, found, load).rows if row.label == "tp1/ngram-k3")
        hits += arm.share.lo <= 0.2 <= arm.share.hi
    assert hits >= 5
