"""The binary of kube-scheduler that a user has: what it is, the files that it is started with, and its process."""

import asyncio
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import yaml

from extender.values.config.completion import written
from extender.values.config.configuration import Configuration, Extender
from extender.values.config.feature_gate_table import DEFAULT_VERSION
from extender.values.klog.setup import escaped
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError

SECONDS_TO_ANSWER: Final = 20.0
"""The time in which the program has to say what it is."""
SECONDS_TO_END: Final = 5.0
"""The time that it has after SIGTERM."""
OLDEST_MINOR: Final = 25
"""kubescheduler.config.k8s.io/v1 is read from 1.25 on."""

_WHERE: Final = f"https://dl.k8s.io/v{DEFAULT_VERSION}.2/bin/linux/amd64/kube-scheduler is one"
_PR_SET_PDEATHSIG: Final = 1


@final
@dataclass(frozen=True, slots=True)
class KubeScheduler:
    """A program that says that it is kube-scheduler."""

    path: Path
    version: str
    """Such as v1.36.2."""

    @staticmethod
    def at(path: Path) -> "KubeScheduler":
        """Asks the program for its version and its name. Raises StartUpError for what is no kube-scheduler."""
        if not path.is_file():
            raise StartUpError(f"--kube-scheduler {path}: {'a folder' if path.is_dir() else 'no such file'}; {_WHERE}")
        if not os.access(path, os.X_OK):
            raise StartUpError(f"--kube-scheduler {path}: not executable; chmod +x {path}")
        version_output = _answer(path, "--version")
        version = re.fullmatch(r"Kubernetes (v1\.(\d+)\S*)", version_output.strip())
        usage = re.search(r"^Usage:\s+(\S+)", _answer(path, "--help"), re.MULTILINE) if version else None
        if version is None or usage is None or usage[1] != "kube-scheduler":
            line = "" if usage is None else f"{usage[1]} {version[1] if version else ''}"
            what = line or next(iter(version_output.strip().splitlines()), "nothing")
            raise StartUpError(
                f"--kube-scheduler {path}: not kube-scheduler; it says that it is {escaped(what, 100)!r}; {_WHERE}"
            )
        if int(version[2]) < OLDEST_MINOR:
            why = f"{version[1]} does not read kubescheduler.config.k8s.io/v1; take 1.{OLDEST_MINOR} or newer"
            raise StartUpError(f"--kube-scheduler {path}: {why}")
        return KubeScheduler(path.absolute(), version[1])

    @property
    def remark(self) -> str:
        """What a user should know of the version; empty for the one that Reprieve follows."""
        if self.version.startswith(f"v{DEFAULT_VERSION}."):
            return ""
        return f"kube-scheduler is {self.version}, and Reprieve knows {DEFAULT_VERSION}; the verbs are the same"

    def started(self, configuration: Path, log: Path) -> "RunningScheduler":
        """Starts it with the configuration. It serves nothing itself, so that it needs no port. Raises StartUpError."""
        command = [str(self.path), f"--config={configuration}", "--secure-port=0"]
        try:
            with log.open("wb") as output:
                # In a session of its own: Ctrl-C is for who has started it, and ends it in order.
                process = subprocess.Popen(  # noqa: S603 - the user's own program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_end_with_the_parent if sys.platform == "linux" else None,  # noqa: PLW1509 - one call
                )
        except OSError as exc:
            raise StartUpError(f"--kube-scheduler {self.path}: {in_one_line(exc)}") from exc
        return RunningScheduler(process, log)


@final
class RunningScheduler:
    """The process. State: whether it was told to end."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process: Final = process
        self._log: Final = log
        self._is_told = False

    def why_over(self) -> str:
        """Returns how it ended, with the last line of its log; empty while it runs, and once it was told to end."""
        code = self._process.poll()
        if code is None or self._is_told:
            return ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"has ended with exit code {code}"
        last = next(reversed(self._log.read_text(errors="replace").split("\n")[:-1]), "")
        return f"kube-scheduler {how}{f': {escaped(last, 400)}' if last else ''}"

    async def stop(self) -> None:
        """Tells it to end, and returns once it has; kills one that takes too long."""
        self._is_told = True
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, SECONDS_TO_END)
        self.kill()

    def kill(self) -> None:
        self._is_told = True
        self._process.kill()
        self._process.wait()


def written_for(address: str, folder: Path) -> tuple[Path, str]:
    """Writes a kubeconfig and a KubeSchedulerConfiguration for a service at an address, which is cluster and extender.

    Returns the configuration's file, and its text.
    """
    kubeconfig, file = folder / "kubeconfig", folder / "kube-scheduler-config.yaml"
    contents: dict[str, Any] = {
        "clusters": [{"name": "memory", "cluster": {"server": address}}],
        "users": [{"name": "memory", "user": {}}],
        "contexts": [{"name": "memory", "context": {"cluster": "memory", "user": "memory"}}],
    }
    kubeconfig.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "memory", **contents})
    )
    extender = Extender(
        url_prefix=f"{address}/extender",
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        weight=1,
        node_cache_capable=True,
        ignorable=True,
    )
    document = written(Configuration(extenders=(extender,)))
    config = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "extenders": document["extenders"],
    }
    text = yaml.safe_dump(config, sort_keys=False, default_flow_style=False, width=10_000)
    file.write_text(text)
    return file, text


def alone(plugins: Iterable[str], folder: Path) -> Path:
    """Writes a configuration of plugins without kube-scheduler's own, which have run before it asks its extender."""
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *sorted(plugins))]
    multi_point = {"disabled": [{"name": "*"}], "enabled": enabled}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file = folder / "extender-config.yaml"
    file.write_text(yaml.safe_dump({**kind, "profiles": [{"plugins": {"multiPoint": multi_point}}]}))
    return file


def _answer(path: Path, flag: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own program
            [path.absolute(), flag],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=SECONDS_TO_ANSWER,
        )
    except subprocess.TimeoutExpired as exc:
        raise StartUpError(
            f"--kube-scheduler {path}: no answer to {flag} within {SECONDS_TO_ANSWER:g} s; {_WHERE}"
        ) from exc
    except OSError as exc:
        raise StartUpError(f"--kube-scheduler {path}: cannot be run: {in_one_line(exc)}; {_WHERE}") from exc
    return done.stdout.decode(errors="replace")


def _end_with_the_parent() -> None:
    # Killed, the parent could not tell it to end.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
