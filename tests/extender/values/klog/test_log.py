"""A line of the log is one that readers of klog know, and one record is one line, whatever callers and objects hold."""

import json
import logging
import re
from collections.abc import Iterator
from io import StringIO

import pytest

from extender.testing.builders import make_node, make_pod
from extender.values.klog.logger import Lines, Logger
from extender.values.klog.setup import JsonFormatter, TextFormatter, configure, set_verbosity
from tests.kit.tables import cases

LOG = Logger("extender.tests.of_logs")


class Heard:
    """What a logger says, in one of the formats."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self._stream = StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(formatter)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def objects(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.text.splitlines()]


def listening(formatter: logging.Formatter) -> Iterator[Heard]:
    heard, logger = Heard(formatter), logging.getLogger("extender")
    before = logger.level
    logger.addHandler(heard.handler)
    set_verbosity(3)
    yield heard
    logger.removeHandler(heard.handler)
    logger.setLevel(before)
    logging.getLogger("api").setLevel(logging.NOTSET)


@pytest.fixture
def text() -> Iterator[Heard]:
    yield from listening(TextFormatter())


@pytest.fixture
def as_json() -> Iterator[Heard]:
    yield from listening(JsonFormatter())


def test_a_message_stands_in_quotes_after_klogs_header(text: Heard) -> None:
    LOG.info(3, "Attempting to schedule pod", pod=make_pod("web").obj())

    header = r"I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_log\.py:\d+\] "
    assert re.fullmatch(header + r'"Attempting to schedule pod" pod="default/web"\n', text.text)
    assert re.match(r"I\d{4} \d\d:\d\d:\d\d\.\d{6}( {0,6}\d{1,7}) ", text.text), "the process in seven places"


@cases(
    "value, rendered",
    ("an object without namespace", make_node("a").obj(), '"a"'),
    ("text", "two words", '"two words"'),
    ("characters that would end the line or colour it", '"\n\x1b', r'"\"\n\x1b"'),
    ("number", 12, "12"),
    ("truth", True, "true"),
    ("nothing", None, "null"),
    ("list", ["a", "b"], '["a","b"]'),
    ("set, in order", frozenset({"b", "a"}), '["a","b"]'),
    ("map", {"a": 1}, '{"a":1}'),
    ("exception", ValueError("no"), '"no"'),
    ("exception without a word", ValueError(), '"ValueError"'),
    ("a number that no JSON reader counts with", 2**80, f'"{2**80}"'),
    ("half of a character", "\ud800", r'"\\ud800"'),
)
def test_values_are_shown_as_klog_shows_them(text: Heard, value: object, rendered: str) -> None:
    LOG.info(0, "m", key=value)

    assert text.text.endswith(f'] "m" key={rendered}\n')


def test_the_error_comes_first(text: Heard) -> None:
    LOG.error(ValueError("not found"), "Error updating pod", pod=make_pod("p").obj())

    assert text.text.startswith("E")
    assert text.text.endswith('] "Error updating pod" err="not found" pod="default/p"\n')


def test_long_values_are_cut(text: Heard) -> None:
    LOG.info(0, "m", key="x" * 100_000)

    assert len(text.text) < 5000


def test_dumps_keep_their_lines_each_behind_a_tab(text: Heard) -> None:
    LOG.info(0, "Dump", nodes=Lines("one\ntwo"))

    assert text.text.endswith('] "Dump" nodes=<\n\tone\n\ttwo\n >\n')


def test_logged_exception_brings_its_frames(text: Heard) -> None:
    try:
        raise KeyError("x\ny")
    except KeyError as exc:
        LOG.exception(exc, "Error occurred")

    first, *frames = text.text.splitlines()
    assert first.endswith(r"""] "Error occurred" err="'x\\ny'" """.rstrip())
    assert all(line.startswith("  ") for line in frames)
    assert "test_log.py" in frames[0]


def test_exception_group_brings_what_is_in_it(text: Heard) -> None:
    """Tasks that run together end by one, however deep the one that failed is."""
    try:
        raise ExceptionGroup("unhandled", [ExceptionGroup("unhandled", [KeyError("first"), OSError("x" * 500)])])
    except ExceptionGroup as exc:
        LOG.exception(exc, "Error occurred")

    last = [line.strip() for line in text.text.splitlines() if "Error: " in line]
    assert last == ["OSError: " + "x" * 500, "KeyError: 'first'"]


def test_record_above_the_verbosity_is_not_logged(text: Heard) -> None:
    LOG.info(4, "too much")

    assert text.text == ""
    assert (LOG.enabled(3), LOG.enabled(4)) == (True, False)


def test_json_has_upstreams_keys(as_json: Heard) -> None:
    LOG.info(
        2, "Successfully bound pod to node", pod=make_pod("web").obj(), node="a", evaluatedNodes=3, feasibleNodes=2
    )

    [line] = as_json.objects
    assert isinstance(line["ts"], float) and line["ts"] > 1e12, "milliseconds"
    assert re.fullmatch(r"klog/test_log\.py:\d+", str(line.pop("caller")))
    assert line | {"ts": 0} == {
        "ts": 0, "msg": "Successfully bound pod to node", "v": 2, "pod": {"name": "web", "namespace": "default"}, "node": "a",
        "evaluatedNodes": 3, "feasibleNodes": 2,
    }  # fmt: skip


def test_json_tells_errors_last_and_without_verbosity(as_json: Heard) -> None:
    LOG.error(ValueError("no"), "Error occurred", pod=make_pod("p").obj())

    assert list(as_json.objects[0]) == ["ts", "caller", "msg", "pod", "err"]
    assert as_json.objects[0]["err"] == "no"


def test_json_holds_frames_too(as_json: Heard) -> None:
    try:
        raise KeyError("x")
    except KeyError as exc:
        LOG.exception(exc, "Error occurred")

    assert "test_log.py" in str(as_json.objects[0]["stacktrace"])


def test_long_message_of_others_keeps_its_last_line(text: Heard) -> None:
    logging.getLogger("extender.other").error("%s", "Traceback\n" + "  File\n" * 10_000 + "OSError: why")

    assert text.text.endswith(r"  File\nOSError: why" + "\n")
    assert "] Traceback\\n" in text.text
    assert len(text.text) < 5000 + 1000


def test_lines_of_others_are_shown_in_both_formats(text: Heard) -> None:
    logging.getLogger("extender.other").warning("%s\n%d", "a", 1)

    assert re.fullmatch(r"W\d{4} .* test_log\.py:\d+\] a\\n1\n", text.text)
    record = logging.LogRecord("x", logging.WARNING, "/a/b/c.py", 7, "%s\n", ("a",), None)
    line = json.loads(JsonFormatter().format(record)) | {"ts": 0}
    assert line == {"ts": 0, "caller": "b/c.py:7", "msg": "a\\n", "v": 0}


@cases(
    "verbosity, by_file, levels",
    ("as little as can be", 0, [], {"extender.engine.scheduler.scheduler": 20, "api.routes.health": 20}),
    ("the same for all", 3, [], {"extender.engine.scheduler.scheduler": 17, "api.routes.health": 17}),
    ("by file", 0, [("scheduler", 5)], {"extender.engine.scheduler.scheduler": 15, "api.routes.health": 20}),
    (
        "the first that fits",
        0,
        [("sched*", 5), ("*", 1)],
        {"extender.engine.scheduler.scheduler": 15, "api.routes.health": 19},
    ),
    (
        "by path",
        2,
        [("extender/engine/sched*", 9)],
        {"extender.engine.scheduler.scheduler": 11, "api.routes.health": 18},
    ),
    ("more than there is", 1000, [], {"extender.engine.scheduler.scheduler": 1}),
)
def test_verbosity_is_chosen_for_all_or_by_file(
    verbosity: int, by_file: list[tuple[str, int]], levels: dict[str, int]
) -> None:
    loggers = {name: logging.getLogger(name) for name in levels}
    root = logging.getLogger()
    before = [*root.handlers], root.level
    try:
        configure("text", verbosity, by_file)

        assert {name: logger.getEffectiveLevel() for name, logger in loggers.items()} == levels
        assert logging.getLogger("httpx").getEffectiveLevel() == logging.INFO
    finally:
        configure()
        root.handlers[:], root.level = before
        for name in ("extender", "api", "uvicorn", "uvicorn.access"):
            logging.getLogger(name).setLevel(logging.NOTSET)
