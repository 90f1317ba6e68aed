from typing import Any

import pynvml
import pytest

from jobs.measures.telemetry import telemetry_caveats, telemetry_metrics

SECOND = 1_000_000_000
WINDOW = (2 * SECOND + SECOND // 2, 7 * SECOND + SECOND // 4)  # 4.75 s, between samples at both ends
CAP = pynvml.nvmlClocksEventReasonSwPowerCap
IDLE = pynvml.nvmlClocksEventReasonGpuIdle


def row(second: float, replica: int = 0, **columns: Any) -> dict[str, Any]:
    time = round(second * SECOND)
    return {"time": time + 1000 * (replica + 1), "sampled": time, "replica": replica, "running": 1, **columns}


def constant(watts: float = 400.0, seconds: int = 10, gpu: int = 0) -> list[dict[str, Any]]:
    """A GPU that draws the same power all the time, told by both of its sources."""
    return [
        row(
            second,
            **{
                f"gpu{gpu}_power_w": watts,
                f"gpu{gpu}_energy_j": 5000.0 + watts * second,
                f"gpu{gpu}_sm_clock_mhz": 1980.0,
                f"gpu{gpu}_throttle_reasons": IDLE,
                f"gpu{gpu}_memory_mib": 2048.0 + 1024 * second,
            },
            host_cpu=None if second == 0 else 0.25,
        )
        for second in range(seconds + 1)
    ]


def test_constant_power_is_watts_times_seconds() -> None:
    metrics = telemetry_metrics(constant(), WINDOW, 950)
    assert metrics == {
        "energy/joules_window": pytest.approx(400 * 4.75),
        "energy/joules_per_output_token": pytest.approx(400 * 4.75 / 950),
        "gpu/power_mean_w": pytest.approx(400.0),
        "gpu/sm_clock_mean_mhz": pytest.approx(1980.0),
        "gpu/throttled_share": 0.0,
        "gpu/memory_peak_gib": pytest.approx(10.0),  # the sample after the window's end: 2 GiB + 8
        "host/cpu_mean": pytest.approx(0.25),
    }
    assert telemetry_caveats(constant(), WINDOW) == ()


def test_gpus_add_up_in_energy_and_power_and_replicas_rows_count_once() -> None:
    rows = [
        {**a, **{k: v for k, v in b.items() if k.startswith("gpu1")}, "replica": replica}
        for a, b in zip(constant(400), constant(200, gpu=1), strict=True)
        for replica in (0, 1)
    ]
    metrics = telemetry_metrics(rows, WINDOW, 1000)
    assert metrics["energy/joules_window"] == pytest.approx(600 * 4.75)
    assert metrics["gpu/power_mean_w"] == pytest.approx(600.0)
    assert metrics["gpu/sm_clock_mean_mhz"] == pytest.approx(1980.0)
    assert metrics["gpu/memory_peak_gib"] == pytest.approx(10.0)  # of one GPU


def test_the_counter_decides_where_samples_of_power_miss_a_burst() -> None:
    rows = constant(100)
    for sample in rows:
        sample["gpu0_energy_j"] = 300.0 * sample["sampled"] / SECOND
    metrics = telemetry_metrics(rows, WINDOW, None)
    assert metrics["energy/joules_window"] == pytest.approx(300 * 4.75)
    assert metrics["gpu/power_mean_w"] == pytest.approx(100.0)
    assert metrics["energy/joules_per_output_token"] is None


def test_a_counter_is_interpolated_at_both_ends_of_the_window() -> None:
    rows = [row(0, gpu0_energy_j=0.0), row(1, gpu0_energy_j=100.0), row(2, gpu0_energy_j=400.0)]
    window = (SECOND // 2, SECOND + SECOND // 2)
    assert telemetry_metrics(rows, window, 100)["energy/joules_window"] == pytest.approx(50 + 150)
    assert telemetry_metrics(rows, window, 100)["energy/joules_per_output_token"] == pytest.approx(2.0)


def test_a_ramp_of_power_is_integrated_where_no_counter_is_and_said() -> None:
    rows = [row(second, gpu0_power_w=100.0 * second, gpu0_energy_j=None) for second in range(11)]
    metrics = telemetry_metrics(rows, (2 * SECOND, 6 * SECOND), 1600)
    assert metrics["energy/joules_window"] == pytest.approx(50 * (6**2 - 2**2))
    assert metrics["energy/joules_per_output_token"] == pytest.approx(1.0)
    assert telemetry_caveats(rows, (2 * SECOND, 6 * SECOND)) == (
        "GPU 0: its energy is integrated from sampled power; it has no energy counter",
    )


def test_a_counter_that_begins_anew_is_bridged_by_power_and_said() -> None:
    rows = constant(400)
    for sample in rows[5:]:
        sample["gpu0_energy_j"] -= 6900.0  # between 4 s and 5 s
    assert rows[5]["gpu0_energy_j"] == 100.0
    assert telemetry_metrics(rows, WINDOW, 1)["energy/joules_window"] == pytest.approx(400 * 4.75)
    assert "its energy counter was reset" in telemetry_caveats(rows, WINDOW)[0]
    for sample in rows:
        del sample["gpu0_power_w"]
    assert telemetry_metrics(rows, WINDOW, 1)["energy/joules_window"] is None


def test_a_reset_outside_the_window_does_not_matter() -> None:
    rows = constant(400)
    rows[0]["gpu0_energy_j"] = 1e9
    assert telemetry_metrics(rows, WINDOW, 1)["energy/joules_window"] == pytest.approx(400 * 4.75)
    assert telemetry_caveats(rows, WINDOW) == ()


def test_missing_rows_leave_the_counter_exact_and_the_means_too() -> None:
    rows = constant(400, seconds=12)
    thinned = [sample for sample in rows if sample["sampled"] // SECOND in (0, 2, 3, 6, 8, 12)]
    metrics = telemetry_metrics(thinned, WINDOW, 1)
    assert metrics["energy/joules_window"] == pytest.approx(1900.0)
    assert metrics["gpu/power_mean_w"] == pytest.approx(400.0)
    assert metrics["host/cpu_mean"] == pytest.approx(0.25)


def test_where_samples_leave_most_of_the_window_open_means_are_unknown_and_energy_is_not() -> None:
    rows = constant(400, seconds=40)
    thinned = [sample for sample in rows if sample["sampled"] // SECOND in (0, 1, 2, 3, 38, 39, 40)]
    metrics = telemetry_metrics(thinned, (2 * SECOND, 39 * SECOND), 1)
    assert metrics["energy/joules_window"] == pytest.approx(400 * 37)
    assert metrics["gpu/power_mean_w"] is None
    assert metrics["gpu/sm_clock_mean_mhz"] is None


def test_a_reading_that_failed_for_a_moment_is_bridged_and_said() -> None:
    rows = constant(400)
    rows[4]["gpu0_energy_j"] = rows[4]["gpu0_power_w"] = None
    metrics = telemetry_metrics(rows, WINDOW, 1)
    assert metrics["energy/joules_window"] == pytest.approx(1900.0)
    assert metrics["gpu/power_mean_w"] == pytest.approx(400.0)
    assert telemetry_caveats(rows, WINDOW) == (
        "gpu0_energy_j: missing in 1 of 11 samples",
        "gpu0_power_w: missing in 1 of 11 samples",
    )


def test_samples_that_end_before_the_window_do_not_make_up_its_energy() -> None:
    metrics = telemetry_metrics(constant(400)[:5], WINDOW, 1)
    assert metrics["energy/joules_window"] is None
    assert metrics["host/cpu_mean"] is None


def test_one_gpu_without_any_source_leaves_no_sum() -> None:
    rows = [{**sample, "gpu1_power_w": None, "gpu1_energy_j": None} for sample in constant()]
    metrics = telemetry_metrics(rows, WINDOW, 1)
    assert metrics["energy/joules_window"] is None
    assert metrics["gpu/power_mean_w"] is None


@pytest.mark.parametrize("window", [None, WINDOW])
def test_absent_sources_are_none_never_zero(window: tuple[int, int] | None) -> None:
    rows = constant() if window is None else [row(second) for second in range(11)]
    assert set(telemetry_metrics(rows, window, 10).values()) == {None}
    assert set(telemetry_metrics([], window, 10).values()) == {None}
    assert telemetry_caveats([], window) == ()


def test_throttling_is_a_share_of_time_and_its_reasons_are_said() -> None:
    rows = constant()
    for sample in rows[3:6]:  # at 3, 4 and 5 s; half of the seconds beside them
        sample["gpu0_throttle_reasons"] = CAP | IDLE
    window = (1 * SECOND, 9 * SECOND)
    assert telemetry_metrics(rows, window, 1)["gpu/throttled_share"] == pytest.approx(3 / 8)
    assert telemetry_caveats(rows, window) == (
        "GPU 0: clocks were held down in 38% of the window: power cap",
    )


def test_an_idle_gpu_or_one_with_fixed_clocks_is_not_throttled() -> None:
    rows = constant()
    for sample in rows:
        sample["gpu0_throttle_reasons"] = pynvml.nvmlClocksEventReasonApplicationsClocksSetting
    assert telemetry_metrics(rows, WINDOW, 1)["gpu/throttled_share"] == 0.0


def test_the_hosts_share_is_of_the_seconds_before_each_sample() -> None:
    rows = [row(0, host_cpu=None), row(1, host_cpu=0.2), row(3, host_cpu=0.8)]
    metrics = telemetry_metrics(rows, (0, 3 * SECOND), 1)
    assert metrics["host/cpu_mean"] == pytest.approx((0.2 * 1 + 0.8 * 2) / 3)


def test_an_engine_that_stopped_answering_is_said() -> None:
    rows = [row(second, host_cpu=0.1) for second in range(6)]
    for sample in rows[3:]:
        sample["running"] = None
    assert telemetry_caveats(rows, WINDOW) == ("engine gauges: missing in 3 of 6 samples",)
