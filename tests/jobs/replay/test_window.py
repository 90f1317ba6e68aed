"""The steady window by its rule: closed loop by users, open loop by the first wave and the last arrival."""

from collections.abc import Callable

from jobs.replay.job import RequestRecord
from jobs.replay.window import Window, open_window

Make = Callable[..., RequestRecord]


def test_a_closed_window_opens_with_the_last_first_conversation() -> None:
    window = Window((0, 2))
    window.finished(0, 10)
    window.finished(0, 20)
    assert window.start is None
    window.finished(2, 30)
    window.finished(0, 40)
    window.out_of_work(50)
    window.out_of_work(45)
    assert (window.start, window.end) == (30, 45)


def test_an_open_window_opens_when_the_first_wave_is_over(make_record: Make) -> None:
    spans = [(0, 100), (10, 40), (30, 90), (41, 300), (80, 120), (130, 140)]
    requests = [
        make_record(conversation=f"c{i}", scheduled=begin, dispatched=begin + 1, ended=end)
        for i, (begin, end) in enumerate(spans)
    ]
    # The second ends first, at 40: the wave is the first three, the last of which ends at 100.
    assert open_window(requests, 6) == (100, 130)
    assert open_window(requests[::-1], 6) == (100, 130)


def test_turns_and_epochs_belong_together(make_record: Make) -> None:
    requests = [
        make_record(conversation="c0", turn=0, scheduled=0, ended=10),
        make_record(conversation="c0", turn=1, scheduled=60, ended=70),
        make_record(conversation="c0", epoch=1, turn=0, scheduled=20, ended=30),
        make_record(conversation="c1", turn=0, scheduled=90, ended=95),
    ]
    # The first conversation to end is the second epoch's, at 30; c0 had arrived and goes on to 70.
    assert open_window(requests, 3) == (70, 90)


def test_what_was_cut_off_has_no_window(make_record: Make) -> None:
    requests = [make_record(conversation=f"c{i}", scheduled=i, ended=10 + i) for i in range(3)]
    assert open_window(requests, 3) == (10 + 2, 2)  # empty: it starts after it ends
    assert open_window(requests, 4) == (None, None)
    assert open_window([*requests, make_record(conversation="c3", error="deadline")], 4) == (None, None)
