"""What users hold on to goes with a reason only: tools/compare_surface.py."""

import pytest

from tools import compare_surface


def test_name_that_went_without_a_reason_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    unexplained = compare_surface.compare({"flags": ["--host", "--port"]}, {"flags": ["--port", "--prefix"]})

    assert unexplained == 1
    assert "  - --host: NO REASON IS GIVEN\n  + --prefix" in capsys.readouterr().out


def test_name_that_went_with_a_reason_is_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare_surface, "GONE", {"flags: --ho*": "it had no effect"})

    unexplained = compare_surface.compare({"flags": ["--host", "--hosts"]}, {"flags": []})

    assert unexplained == 0
    assert "  - --hosts: it had no effect" in capsys.readouterr().out
