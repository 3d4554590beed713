"""A configuration file that changes while the service runs is checked, and takes effect at the next start."""

import logging
from pathlib import Path

import pytest

from api.settings.configuration_file import WatchedConfiguration
from api.settings.settings import Settings
from tests.api.in_process import HEADER

VALID = "is valid, and takes effect at the next start"


def logged_messages(
    file: Path, changes: list[str | None], caplog: pytest.LogCaptureFixture, *, calls_extenders: bool = True
) -> list[str]:
    """What is logged of each of the changes; None takes the file away."""
    file.write_text(HEADER)
    watched = WatchedConfiguration(Settings(config=file), calls_extenders=calls_extenders)
    with caplog.at_level(logging.INFO):
        for text in changes:
            file.unlink(missing_ok=True) if text is None else file.write_text(text)
            watched.look()
            watched.look()
    return caplog.messages


def test_a_valid_change_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    messages = logged_messages(tmp_path / "c.yaml", [HEADER, HEADER + "percentageOfNodesToScore: 50\n"], caplog)

    assert [VALID in message for message in messages] == [True]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEADER + "percentageOfNodesToScore: 101\n", "percentageOfNodesToScore: Invalid value"),
        (HEADER + "profiles:\n- plugins: {score: {enabled: [{name: ImageLocalty}]}}\n", "did you mean ImageLocality?"),
        (HEADER + "extenders:\n- {urlPrefix: 'ftp://e', filterVerb: f}\n", "extenders[0].urlPrefix"),
        ("apiVersion: [", "c.yaml"),
        (None, "no such file"),
    ],
    ids=["a value", "a plugin", "an extender", "no YAML", "no file"],
)
def test_a_change_that_would_fail_the_next_start_is_told_with_the_reason(
    tmp_path: Path, text: str | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    (message,) = logged_messages(tmp_path / "c.yaml", [text], caplog)

    assert '"The changed configuration would fail the next start; the old one stays in force"' in message
    assert why in message


def test_a_change_that_is_taken_back_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    messages = logged_messages(tmp_path / "c.yaml", [None, HEADER], caplog)

    assert "is again as it was at the start" in messages[-1]


def test_extenders_that_are_not_called_may_be_any(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = HEADER + "extenders:\n- {urlPrefix: 'ftp://e', filterVerb: f}\n"

    (message,) = logged_messages(tmp_path / "c.yaml", [text], caplog, calls_extenders=False)

    assert VALID in message
