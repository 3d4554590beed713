"""Times are read as Go reads them, and refused with its words."""

import pytest

from extender.values.golang.times import TimeError, read_micro_time, read_time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20T10:00:00Z", "2026-11-20T10:00:00Z"),
        ("2026-11-20T10:00:00.999999999Z", "2026-11-20T10:00:00Z"),
        ("2026-11-20T01:30:00+02:00", "2026-11-19T23:30:00Z"),
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times_become_utc_with_whole_seconds(text, expected):
    assert read_time(text) == expected


def test_micro_times_keep_six_digits():
    assert read_micro_time("2026-11-20T10:00:00.123456-01:00") == "2026-11-20T11:00:00.123456Z"


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2026-11-20", 'parsing time "2026-11-20" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        (
            "2026-11-20T10:00:00",
            'parsing time "2026-11-20T10:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
        ),
        ("2026-13-20T10:00:00Z", 'parsing time "2026-13-20T10:00:00Z": month out of range'),
        ("2026-02-30T10:00:00Z", 'parsing time "2026-02-30T10:00:00Z": day out of range'),
        ("2026-02-20T10:00:00Zx", 'parsing time "2026-02-20T10:00:00Zx": extra text: "x"'),
    ],
)
def test_malformed_time_is_refused_in_gos_words(text, refusal):
    with pytest.raises(TimeError) as error:
        read_time(text)

    assert str(error.value) == refusal


def test_micro_times_need_their_digits():
    with pytest.raises(TimeError, match=r'cannot parse "Z" as "\.000000"'):
        read_micro_time("2026-11-20T10:00:00Z")
