"""The moving picture of the README is a session in a real terminal: REPRIEVE_PICTURES=1 has it made again."""

import os
from pathlib import Path

import pytest

from tests.installed.environment import ROOT, Environment
from tests.installed.terminal import picture, screens, screens_in, session

pytestmark = pytest.mark.slow

PICTURE = ROOT / "docs" / "images" / "session.svg"
TITLE = "A session in a terminal: a plugin is made and tried, and shows what it would change in a cluster"
COMMANDS = ("reprieve init my-policy", "cd my-policy", "reprieve test", "clear; reprieve dev")


def test_the_picture_shows_what_the_commands_print(environment: Environment, tmp_path: Path) -> None:
    frames = session(environment, tmp_path, COMMANDS)

    if os.environ.get("REPRIEVE_PICTURES"):
        PICTURE.write_text(picture(frames, TITLE), encoding="utf-8")
    assert screens_in(PICTURE.read_text(encoding="utf-8")) == screens(frames)
