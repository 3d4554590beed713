"""`make bench-check` fails when a ratio has fallen by 30 %. The ratios themselves are measured by no test: timing
decides none.
"""

import json

import pytest

from bench import ratios


@pytest.mark.parametrize(
    ("now", "fallen"),
    [
        pytest.param({"a": 2.0, "b": 3.0}, [], id="as they were"),
        pytest.param({"a": 9.0, "b": 2.2}, [], id="faster, and slower by a quarter"),
        pytest.param({"a": 1.3, "b": 3.0}, ["a"], id="slower by 35 %"),
        pytest.param({"b": 3.0}, ["a"], id="not measured any more"),
    ],
)
def test_benchmarks_that_fell_by_30_percent_are_named(now: dict[str, float], fallen: list[str]) -> None:
    assert ratios.check(now, {"a": 2.0, "b": 3.0}) == fallen


@pytest.mark.parametrize(("factor", "code"), [(1.0, 0), (0.5, 1)])
def test_the_exit_code_says_whether_one_has(
    factor: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = json.loads(ratios.RECORDED.read_text())
    first = next(iter(recorded))
    monkeypatch.setattr(ratios, "measured", lambda: recorded | {first: recorded[first] * factor})

    assert ratios.main([]) == code
    assert ("FALLEN" in capsys.readouterr().out) == bool(code)
