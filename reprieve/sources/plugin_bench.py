"""What the plugins of a project would change in a cluster, again after each edit and each change of the cluster."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final, final

from extender.answers.questions import Questions
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.values.reasons import InputError, in_one_line
from reprieve.lab.plugin_effects import PluginEffects, plugin_effects
from reprieve.sources.configurations import read_configuration
from reprieve.sources.plugin_project import PluginProject

SECONDS: Final = 0.25
"""Pause between two looks at the project's files."""


@final
class PluginBench:
    """A project's last good plugins, to try on a cluster. State: these, and when files changed.

    `tell` is called with lines about edits.
    """

    def __init__(self, project: PluginProject, config: Path | None, limit: int, tell: Callable[[str], None]) -> None:
        self._project = project
        self._config = config
        self._limit = limit
        self._tell = tell
        self._stamp = project.stamp()
        self._registry = Registry(IN_TREE)

    async def effects(self, questions: Questions, registry: Registry | None = None) -> PluginEffects:
        """Returns what the plugins change. Raises InputError for a wrong configuration or arguments."""
        after = self._project.enabled_in(read_configuration(self._config))
        before = self._project.disabled_in(after)
        return await plugin_effects(
            questions.fork(), registry or self._registry, before, after, self._project.plugin_names, self._limit
        )

    async def changes(self, questions: Questions, last: PluginEffects) -> AsyncIterator[PluginEffects]:
        """Yields what the plugins change whenever that is not what they changed before."""
        self._tell(f"waiting for edits in {self._project.only or self._project.folder}; press Ctrl-C to stop")
        version = questions.version()
        while True:
            await asyncio.sleep(SECONDS)
            stamp = self._project.stamp()
            is_edited, self._stamp = stamp != self._stamp, stamp
            if not is_edited and questions.version() == version:
                continue
            version = questions.version()
            effects = await self._reloaded(questions) if is_edited else await self.effects(questions)
            if effects is not None and effects != last:
                last = effects
                yield effects
            elif effects is not None and is_edited:
                self._tell("the edit changes nothing")

    async def _reloaded(self, questions: Questions) -> PluginEffects | None:
        """Returns what the edited plugins change; None, reported, if they are broken: the last good ones stay."""
        before = self._project.forget_modules()
        try:
            registry = Registry(IN_TREE)
            effects = await self.effects(questions, registry)
        except InputError as exc:
            why = in_one_line(exc)
        else:
            if not effects.errors:
                self._registry = registry
                self._tell("reloaded")
                return effects
            why = "; ".join(effects.errors)
        self._project.forget_modules()
        sys.modules.update(before)
        self._tell(f"the edited plugins cannot be used, and the last working ones stay in use: {why}")
        return None
