"""Three machines with a clock and a disk each: one for the API server, two for the replicas of a scheduler, whose
processes come and go.
"""

import asyncio
import os
import random
import re
import resource
import signal
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, final

from bench.jepsen.history import Began, Happened, Record, Seen
from bench.jepsen.network import Address, Network, a_network
from bench.jepsen.schedule import Fault, Kind
from extender.rules.state_file import load_state
from tests.kit.certificates import Authority
from tests.kit.faults.resets import ResettingProxy
from tests.kit.forked import ForkServer, a_fork_server
from tests.kit.service import kubeconfig_for

START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 180.0
RESTART_PAUSE: Final = 0.3
CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}
podMaxBackoffSeconds: 2
"""
REACHED: Final = re.compile(r"kubectl --server http://[^:]+:(\d+) reaches it")
EMPTY: Final = '{"apiVersion": "v1", "kind": "List", "items": []}'
FAKETIME: Final = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
"""Steps the clock on the wall of single processes; without it their clocks do not step."""


@contextmanager
def the_command(folder: Path) -> Iterator[ForkServer]:
    """Starts processes of the command, with a clock of their own if that can be."""
    faked = (
        {"LD_PRELOAD": str(FAKETIME), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_CACHE_DURATION": "1"}
        if FAKETIME
        else {}
    )
    with a_fork_server({}, folder, faked) as fork_server:
        yield fork_server


@final
class Machine:
    """Where one process runs at a time, in real time. State: the process, the clock and the disk."""

    def __init__(
        self,
        name: str,
        fork_server: ForkServer,
        folder: Path,
        record: Callable[[Record], None],
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.folder = folder
        self.log = folder / f"{name}.log"
        self.pid = 0
        self.num_started = 0
        self._fork_server, self._record, self._clock = fork_server, record, clock
        self._is_full = False
        self._is_paused = False
        self._ended = asyncio.Event()
        self.step_clock(0)

    def happened(self, what: str, *, broken: bool = False) -> None:
        self._record(Happened(self._clock(), f"{self.name}{self.num_started or ''}: {what}", broken))

    def start(self, *arguments: str | Path) -> None:
        self.num_started += 1
        self.log = self.folder / f"{self.name}{self.num_started}.log"
        self.log.touch()
        self._ended.clear()
        environment = {"FAKETIME_TIMESTAMP_FILE": str(self._clock_file)}
        self.pid = self._fork_server.fork([str(argument) for argument in arguments], environment, self.log)
        self.fill_disk(self._is_full)
        self.happened("started")
        descriptor = os.pidfd_open(self.pid)

        def end() -> None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
            self._ended.set()

        asyncio.get_running_loop().add_reader(descriptor, end)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal, if the process has not ended."""
        if self.pid and not self._ended.is_set():
            self._is_paused = number == signal.SIGSTOP
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    async def ends(self) -> int:
        """Waits for the process to end. Returns its exit code, or minus the signal that has ended it."""
        await self._ended.wait()
        code = self._fork_server.wait_for(self.pid)
        self.pid = 0
        text = self.log.read_text(errors="replace")
        last = (text.splitlines() or [""])[-1]
        if "Traceback" in text:
            self.happened(
                "\n".join(["Traceback in its log:", *text[text.index("Traceback") :].splitlines()[:40]]), broken=True
            )
        foreseen = code in (0, 4, -signal.SIGKILL)
        if code == -signal.SIGTERM:
            foreseen = "Application startup complete" not in text  # it does not listen to signals yet
        self.happened(f"ended with {code}: {last}", broken=not foreseen)
        return code

    async def stop(self) -> int:
        """Tells the process to end, and kills it if it does not. Returns its exit code."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._ended.wait()
        except TimeoutError:
            self.happened("did not end when told", broken=True)
            self.send(signal.SIGKILL)
        return await self.ends()

    def fill_disk(self, full: bool) -> None:
        """Makes no file of the process grow any more, as if the disk were full; or lets them grow again."""
        self._is_full = full
        if self.pid and not self._ended.is_set():
            with suppress(ProcessLookupError):
                resource.prlimit(
                    self.pid, resource.RLIMIT_FSIZE, (1 if full else resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                )

    def step_clock(self, seconds: int) -> None:
        """Sets the clock on the wall this far ahead of the true time, within a second. Without libfaketime that has no
        effect.
        """
        self._clock_file.write_text(f"{seconds:+d}\n")

    @property
    def _clock_file(self) -> Path:
        return self.folder / f"{self.name}.clock"


class ApiServer(ABC):
    """What the replicas talk to, through networks of theirs. State: where it listens."""

    def __init__(self, machine: Machine, record: Callable[[Record], None], clock: Callable[[], float]) -> None:
        self.machine = machine
        self.address = Address()
        self._record, self._clock = record, clock

    @abstractmethod
    def running(self) -> AbstractAsyncContextManager[None]:
        """Runs it for as long as the block runs."""

    @abstractmethod
    async def strike(self, fault: Fault) -> None:
        """Returns when the fault is over, and it listens again."""

    def _begins(self, saved: list[Seen], *, forgets: bool = False) -> None:
        self.address.life += 1
        self._record(Began(self._clock(), self.address.life, saved, forgets))


@final
class EmbeddedServer(ApiServer):
    """The embedded cluster. It is saved when it is told to end, and forgets what came after that when it is killed."""

    def __init__(self, machine: Machine, record: Callable[[Record], None], clock: Callable[[], float]) -> None:
        super().__init__(machine, record, clock)
        self._file = machine.folder / "cluster.json"
        self._file.write_text(EMPTY)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self._start()
        yield
        await self.machine.stop()

    async def strike(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.SERVER_PAUSED:
                self.machine.send(signal.SIGSTOP)
                await asyncio.sleep(fault.seconds)
                self.machine.send(signal.SIGCONT)
                return
            case Kind.SERVER_CRASHED:
                self.machine.send(signal.SIGKILL)
                await self.machine.ends()
                await self._start(forgets=True)
                return
            case Kind.SERVER_CANNOT_SAVE:
                self.machine.fill_disk(True)
            case Kind.SERVER_CLOCK:
                self.machine.step_clock(fault.step)
                await asyncio.sleep(1)
        await self._start(forgets=await self.machine.stop() != 0)

    async def _start(self, *, forgets: bool = False) -> None:
        self._begins([Seen.of(obj) for obj in load_state(self._file) if obj["kind"] == "Pod"], forgets=forgets)
        self.machine.fill_disk(False)
        self.machine.start("serve", "--no-schedule", "--port", "0", "--kubernetes-port", "0", "--save", self._file)
        async with asyncio.timeout(START_SECONDS):
            while not (match := REACHED.search(self.machine.log.read_text())):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.02)
        self.address.port = int(match[1])


@final
class Replica:
    """A scheduler that is started again whenever it ends, each time with a network of its own."""

    def __init__(
        self,
        machine: Machine,
        server: Address,
        record: Callable[[Record], None],
        rng: random.Random,
        flags: Sequence[str],
    ) -> None:
        """Nothing runs yet.

        Arguments:
            flags: further ones for the command.
        """
        self.machine = machine
        self._flags = flags
        self.network: Network | None = None
        self.resets = ResettingProxy(0, rng)
        self._server, self._record, self._rng = server, record, rng
        self._configuration = machine.folder / f"{machine.name}.yaml"
        self._configuration.write_text(CONFIGURATION)
        self._is_over = False

    @property
    def process(self) -> str:
        """The name of the process in the history."""
        return f"{self.machine.name}{self.machine.num_started}"

    async def run(self, clock: Callable[[], float]) -> None:
        """Runs until `stop`."""
        folder = self.machine.folder / self.machine.name
        folder.mkdir()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*Authority(folder, "ca").sign("apiserver", "IP:127.0.0.1"))
        while not self._is_over:
            process = f"{self.machine.name}{self.machine.num_started + 1}"
            async with a_network(process, self._server, self._record, clock, self._rng, tls) as self.network:
                self.resets = ResettingProxy(self.network.port, random.Random(f"{process} resets"))
                with self.resets.running():
                    kubeconfig = kubeconfig_for(self.resets.port, folder, secure=True)
                    command = ["serve", "--schedule", *self._flags, "--port", "0", "--config", str(self._configuration)]
                    self.machine.start(*command, "--kubeconfig", kubeconfig, "--records", folder / "records.jsonl")
                    await self.machine.ends()
            self.network = None
            await asyncio.sleep(RESTART_PAUSE)

    def stop(self) -> None:
        """Tells the process to end, for good."""
        self._is_over = True
        self.machine.send(signal.SIGCONT)
        self.machine.send(signal.SIGTERM)


@final
class Processors:
    """Counts how long the processes of machines, and this one, are ready to run and wait for a processor."""

    def __init__(self, *machines: Machine) -> None:
        self._machines = machines
        self._counted: dict[int, int] = {}

    def waited(self) -> float:
        """Returns the seconds since the last call, summed up: mostly one waits for another."""
        before, self._counted = self._counted, {}
        for pid in {os.getpid(), *(machine.pid for machine in self._machines)} - {0}:
            with suppress(OSError):
                self._counted[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
        return sum(waited - before.get(pid, 0) for pid, waited in self._counted.items()) / 1e9


@asynccontextmanager
async def killed_afterwards(*machines: Machine) -> AsyncIterator[None]:
    """Ends all processes at the end of the block."""
    try:
        yield
    finally:
        for machine in machines:
            if machine.pid:
                machine.send(signal.SIGKILL)
                await machine.ends()
