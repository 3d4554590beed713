"""What holds for all tests."""

import gc
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

pytest_plugins = ["tests.kit.summary", "tests.kit.async_tests"]

# Timing decides no test: a busy machine is no failure. `tests.kit.examples` scales what a test asks for by itself.
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.register_profile("landing", deadline=None, max_examples=25)
settings.load_profile("landing")

# A shell without job control starts what runs in the background with SIGINT ignored, and programs that tests interrupt
# would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class BrowserTogether(LoadFileScheduling):
    """Gives a file to one worker, which makes what its tests share once; all tests of the browser are like one file."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "tests/browser" if file.startswith("tests/browser/") else file

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        _check_different(collection)
        super().add_node_collection(node, collection)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> BrowserTogether:
    return BrowserTogether(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`, one more than there are cores, because a test waits for processes, sockets and pages now and then."""
    return (os.cpu_count() or 1) + 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run the files in an order that is drawn with this seed")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not hasattr(config, "workerinput"):
        _check_different([item.nodeid for item in items])
    if seed := config.getoption("shuffle"):
        place = {file: random.Random(f"{seed} {file}").random() for file in {item.path for item in items}}
        items.sort(key=lambda item: place[item.path])


def _check_different(names: Sequence[str]) -> None:
    """Raises UsageError where two tests have one name: xdist would run one of them."""
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise pytest.UsageError("several tests are called " + ", ".join(twice))


def pytest_collection_finish() -> None:
    """Keeps Python's collector from walking through all that was collected, again and again. The services that tests
    start in this process would end that when they end, and would keep what they leave behind.
    """
    gc.collect()
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None
