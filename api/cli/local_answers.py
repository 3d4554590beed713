"""Answers worked out in this process, about a cluster behind an API server or in a dump."""

import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Final

from api.cli.manifest_files import state_of
from api.config_fixes import with_fix
from api.fatal_errors import StartUpError
from api.starting import read_configuration
from extender.answers.questions import QuestionError, Questions
from extender.apiserver.client import Client
from extender.apiserver.credentials.target import CredentialsError, Target
from extender.apiserver.credentials.target_lookup import find_target
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.config import ConfigErrors
from extender.embedded.dumps.state_file import StateFileError, load, read
from extender.embedded.trial_registry import TrialRegistry, templates_among
from extender.objects.decoding import DecodeError
from extender.recordings.entries import Recording, RecordingError, is_recording

STANDARD_INPUT: Final = Path("-")


@asynccontextmanager
async def about_cluster(kubeconfig: Path, context: str | None, config: Path | None) -> AsyncIterator[Questions]:
    """Yields answers about the cluster of a kubeconfig, once all its objects are listed.

    Raises:
        StartUpError: the kubeconfig or the configuration cannot be used, or a question cannot be answered.
    """
    configuration = read_configuration(config)
    with _failing_in_one_line():
        async with (
            aclosing(Client(target_of(kubeconfig, context))) as client,
            live_backend(
                configuration, client, LiveOptions(admits=partial(TrialRegistry, features=configuration.feature_gates))
            ) as backend,
        ):
            await backend.wait_for_sync()
            if backend.questions is None:
                raise QuestionError("the service answers no questions")
            yield backend.questions


@asynccontextmanager
async def about_dump(dump: Path, config: Path | None, at: str | None = None) -> AsyncIterator[Questions]:
    """Yields answers about the cluster in a file; `-` is standard input.

    Arguments:
        config: of the scheduler; None for the default one, and with a recording for that which was recorded.
        at: the moment of a recording; None for its end.

    Raises:
        StartUpError: the file or the configuration cannot be used, or a question cannot be answered.
    """
    with _failing_in_one_line():
        recording = Recording(dump) if dump != STANDARD_INPUT and is_recording(dump) else None
        configuration = recording.configuration if recording is not None and config is None else read_configuration(config)
        if recording is not None:
            objects = recording.objects_at(None if at is None else recording.seconds_of(at))
        elif at is not None:
            raise StartUpError(f"--at: {dump} is no recording, and of one moment only")
        else:
            objects = read(sys.stdin.buffer.read(), "standard input") if dump == STANDARD_INPUT else load(dump)
        try:
            state = state_of(objects)
        except DecodeError as exc:
            raise StartUpError(f"{'standard input' if dump == STANDARD_INPUT else dump}: {exc}") from exc
        yield Questions.of(configuration, state, partial(TrialRegistry, templates_among(objects), configuration.feature_gates))


@cache
def target_of(kubeconfig: Path, context: str | None) -> Target:
    """Returns the API server that a kubeconfig names.

    Raises:
        StartUpError: the kubeconfig cannot be used.
    """
    with _failing_in_one_line():
        return find_target(os.environ, file=kubeconfig, context=context or "")


@contextmanager
def _failing_in_one_line() -> Iterator[None]:
    try:
        yield
    except ConfigErrors as exc:
        raise StartUpError(with_fix(exc)) from exc
    except (StateFileError, CredentialsError, QuestionError, DecodeError, RecordingError) as exc:
        raise StartUpError(exc) from exc
