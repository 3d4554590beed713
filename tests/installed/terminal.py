"""A terminal: what a person sees of commands that are typed into a real shell, as frames, and those as a moving
picture.
"""

import fcntl
import html
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte

from tests.installed.environment import Environment

COLUMNS, LINES = 118, 26
PROMPT = "$ "
TYPING, PAUSE = 0.05, 2.2
"""Seconds for a letter in the picture, and to read what a command printed."""

_BUTTONS = ("#f85149", "#d29922", "#3fb950")
_BETWEEN = "\n----\n"
_VARYING = re.compile(r"\d+ ms")
_WIDTH, _HEIGHT, _LEFT, _TOP = 8.4, 19.0, 18.0, 44.0
_COLOURS = {
    "default": "#e6edf3",
    "green": "#3fb950",
    "red": "#f85149",
    "brown": "#d29922",
    "blue": "#58a6ff",
    "cyan": "#39c5cf",
}


@dataclass(frozen=True)
class Frame:
    """What the screen shows, and for how many seconds of the picture."""

    lines: tuple[tuple[tuple[str, str, bool], ...], ...]
    """Each line as runs of equal looks: text, colour, whether it is bold."""
    seconds: float

    @property
    def text(self) -> str:
        return "\n".join("".join(text for text, _, _ in line).rstrip() for line in self.lines).rstrip()


def session(environment: Environment, folder: Path, commands: Sequence[str]) -> list[Frame]:
    """The frames of a session in which the commands are typed, each after the one before has ended."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        # The window's title is the number of the command that the prompt waits for.
        variables = environment.variables(PS1=rf"\[\e]2;\#\a\]{PROMPT}", TERM="xterm-256color")
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], variables)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    frames: list[Frame] = []
    try:
        _read(terminal, stream, lambda: screen.title == "1")
        for number, command in enumerate(commands, start=2):
            for place in range(1, len(command) + 1):
                os.write(terminal, command[place - 1].encode())
                typed = f"{PROMPT}{command[:place]}".rstrip()
                _read(terminal, stream, lambda typed=typed: screen.display[screen.cursor.y].rstrip() == typed)  # type: ignore[misc]
                frames.append(_frame(screen, TYPING))
            os.write(terminal, b"\n")
            _read(terminal, stream, lambda number=number: screen.title == str(number))  # type: ignore[misc]
            _read(terminal, stream, lambda: screen.display[screen.cursor.y].rstrip() == PROMPT.rstrip())
            frames.append(_frame(screen, PAUSE))
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return frames


def _read(terminal: int, stream: pyte.ByteStream, is_there: Callable[[], bool]) -> None:
    """Feeds what the terminal prints to the screen until it is as it should be."""
    ends = time.monotonic() + 120
    while not is_there():
        assert time.monotonic() < ends
        if select.select([terminal], [], [], 0.5)[0]:
            stream.feed(os.read(terminal, 65536))


def _frame(screen: pyte.Screen, seconds: float) -> Frame:
    lines = []
    for row in range(LINES):
        runs: list[tuple[str, str, bool]] = []
        for column in range(COLUMNS):
            cell = screen.buffer[row][column]
            look = (cell.fg if cell.fg in _COLOURS else "default", cell.bold)
            if runs and runs[-1][1:] == look:
                runs[-1] = (runs[-1][0] + cell.data, *look)
            else:
                runs.append((cell.data, *look))
        lines.append(tuple(runs))
    return Frame(tuple(lines), seconds)


def screens(frames: Sequence[Frame]) -> list[str]:
    """What the screen shows after each command, without what differs each time."""
    return [_VARYING.sub("N ms", frame.text) for frame in frames if frame.seconds == PAUSE]


def picture(frames: Sequence[Frame], title: str) -> str:
    """An SVG that plays the frames over and over, without any script. With reduced motion it shows the last one."""
    total = sum(frame.seconds for frame in frames)
    width, height = 2 * _LEFT + COLUMNS * _WIDTH, _TOP + LINES * _HEIGHT + 12
    parts, began = [], 0.0
    for number, frame in enumerate(frames):
        parts.append(
            f'<g class="f" id="f{number}">{"".join(_line(row, runs) for row, runs in enumerate(frame.lines))}</g>'
        )
        begins, ends = 100 * began / total, 100 * (began + frame.seconds) / total
        hidden = f"0%,{begins:.3f}%{{visibility:hidden}}" if number else ""
        parts.append(
            f"<style>@keyframes k{number}{{{hidden}{begins + 0.001:.3f}%,{ends:.3f}%{{visibility:visible}}"
            f"{ends + 0.001:.3f}%,100%{{visibility:{'visible' if number == len(frames) - 1 else 'hidden'}}}}}"
            f"#f{number}{{animation:k{number} {total:.2f}s step-end infinite}}</style>"
        )
        began += frame.seconds
    last = len(frames) - 1
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{html.escape(title)}">'
        f"<title>{html.escape(title)}</title><desc>{html.escape(_BETWEEN.join(screens(frames)))}</desc>"
        "<style>text{font:14px "
        "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}.f{visibility:hidden}"
        "@media "
        f"(prefers-reduced-motion:reduce){{.f{{animation:none!important}}#f{last}{{visibility:visible!important}}}}</style>"
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="10" fill="#0d1117"/>'
        + "".join(
            f'<circle cx="{_LEFT + 18 * place + 4}" cy="20" r="6" fill="{fill}"/>'
            for place, fill in enumerate(("#f85149", "#d29922", "#3fb950"))
        )
        + "".join(parts)
        + "</svg>\n"
    )


def _line(row: int, runs: tuple[tuple[str, str, bool], ...]) -> str:
    text, column = "", 0
    for run, colour, bold in runs:
        if run.strip():
            weight = ' font-weight="700"' if bold else ""
            x = _LEFT + column * _WIDTH
            long = f' textLength="{len(run.rstrip()) * _WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
            looks = f'fill="{_COLOURS[colour]}"{weight}{long}'
            text += f'<text x="{x:.1f}" y="{_TOP + row * _HEIGHT:.0f}" {looks}>{html.escape(run.rstrip())}</text>'
        column += len(run)
    return text


def screens_in(svg: str) -> list[str]:
    """The description of what each command printed, as the picture holds it for those who do not see it."""
    match = re.search(r"<desc>(.*?)</desc>", svg, re.DOTALL)
    return html.unescape(match[1]).split(_BETWEEN) if match else []
