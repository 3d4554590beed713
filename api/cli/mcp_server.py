"""The server of `reprieve mcp`. It needs the extra `mcp`, and so nothing else imports it."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, final

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from api.cli.showing import printable
from api.cli.sources import Answers, Source
from extender import __version__
from extender.answers.catalogue import (
    CapacityOfQuestion,
    ExplainQuestion,
    PreemptionsQuestion,
    Question,
    WhatIfQuestion,
)
from extender.answers.types import WhatIfRequest
from extender.values.reasons import InputError
from reprieve.lab.plan.plan_answer import MOST_MOVES, MOVES, PlanRequest
from reprieve.lab.plan.plan_question import PlanQuestion
from reprieve.sources.manifest_files import placed
from reprieve.sources.manifest_text import ManifestTextError, objects_in

_INSTRUCTIONS: Final = (
    "Answers about the scheduling of a Kubernetes cluster, worked out by a scheduler that decides as kube-scheduler "
    "does. Nothing is changed. For a pending pod ask `why` first: `waterfall` has the plugins that refused nodes, in "
    "their order, `nearest` what the closest nodes lack, and `fixes` changes of the pod that were tried and open "
    "nodes. Pods with `hidden` belong to a namespace that the caller may not see."
)

Pod = Annotated[str, Field(description="NAMESPACE/NAME of the pod, or NAME in the default namespace")]
Manifests = Annotated[str, Field(description="Kubernetes objects as YAML or JSON; several documents are allowed")]
DrainedNodes = Annotated[Sequence[str], Field(description="Nodes to drain")]
RemovedNodes = Annotated[Sequence[str], Field(description="Nodes to remove")]
WithPending = Annotated[bool, Field(description="Also schedule the pending pods")]
Limit = Annotated[int, Field(ge=1, le=100_000, description="Stop counting at this number")]

MaxMoves = Annotated[int, Field(ge=1, le=MOST_MOVES, description="Maximum number of moves")]
FreeNodes = Annotated[int, Field(ge=0, le=100_000, description="Number of nodes that should be free, instead of pods")]
Of = Annotated[str, Field(description="With free_nodes: a resource; nodes that offer it, free of pods that request it")]
Same = Annotated[str, Field(description="With free_nodes: a label of which all these nodes have the same value")]

PREEMPTIONS: Final = 20
"""The number of preemptions of a pod that are told."""


def server_of(answers: Answers, source: Source) -> MCPServer[None]:
    server: MCPServer[None] = MCPServer(
        "reprieve", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    tools = _Tools(answers, source)
    for tool in (tools.why, tools.victims, tools.whatif, tools.who_preempted, tools.fits, tools.plan):
        server.add_tool(tool)
    return server


@final
class _Tools:
    """The tools. What their programs are told about them is the docstrings and the descriptions of the parameters."""

    def __init__(self, answers: Answers, source: Source) -> None:
        self._answers = answers
        self._source = source

    async def why(self, pod: Pod) -> dict[str, Any]:
        """Say why a pod is pending: which plugin refuses which nodes, what the nearest nodes lack, and what would let
        it in.

        The answer also says whether evicting other pods would help.
        """
        namespace, name = self._namespace_and_name(pod)
        return await self._answer(
            ExplainQuestion(namespace=namespace, pod=name),
            f"there is no pod {namespace}/{name}, and no recent decision about one",
        )

    async def victims(self, manifests: Manifests) -> dict[str, Any]:
        """Say which pods would be evicted if these objects were created: on which node, and against which disruption
        budgets.
        """
        return await self._answer(WhatIfQuestion(request=WhatIfRequest(create=self._objects(manifests))))

    async def whatif(
        self,
        create: Manifests = "",
        drain_nodes: DrainedNodes = (),
        remove_nodes: RemovedNodes = (),
        include_pending: WithPending = False,
    ) -> dict[str, Any]:
        """Say where every pod concerned would go if objects were created, or nodes drained or removed, with all
        evictions that follow.
        """
        request = WhatIfRequest(
            create=self._objects(create) if create else [],
            drain_nodes=[*drain_nodes],
            remove_nodes=[*remove_nodes],
            include_pending=include_pending,
        )
        if request == WhatIfRequest():
            raise ToolError("nothing to try: give create, drain_nodes, remove_nodes or include_pending")
        return await self._answer(WhatIfQuestion(request=request))

    async def who_preempted(self, pod: Pod) -> dict[str, Any]:
        """Say for which pods a pod was evicted, or which it evicted: when, and why not others. It is known after the
        events are gone.
        """
        if not self._answers.remembers:
            raise ToolError("only a Reprieve service records preemptions: start this with --server")
        return await self._answer(PreemptionsQuestion(pod="/".join(self._namespace_and_name(pod)), limit=PREEMPTIONS))

    async def fits(self, manifest: Manifests, limit: Limit = 1000) -> dict[str, Any]:
        """Count how many pods like this one, or of this workload, fit without evictions: on which nodes, and what stops
        the next one.
        """
        objects = self._objects(manifest)
        if len(objects) != 1:
            raise ToolError(f"{len(objects)} objects; give one pod or workload")
        return await self._answer(CapacityOfQuestion(pod=objects[0], limit=limit))

    async def plan(
        self,
        manifests: Manifests = "",
        free_nodes: FreeNodes = 0,
        of: Of = "",
        same: Same = "",
        max_moves: MaxMoves = MOVES,
    ) -> dict[str, Any]:
        """Say which running pods would have to move, where and in which order, so that new pods fit without evicting
        anybody for good, or so that whole nodes are free.
        """
        create = self._objects(manifests) if manifests else []
        request = PlanRequest(create=create, max_moves=max_moves, free_nodes=free_nodes, of=of, same=same)
        return await self._answer(PlanQuestion(request=request))

    def _namespace_and_name(self, pod: str) -> tuple[str, str]:
        namespace, _, name = pod.removeprefix("pod/").rpartition("/")
        return namespace or self._source.default_namespace, name

    def _objects(self, text: str) -> list[dict[str, Any]]:
        try:
            return placed(objects_in(text), self._source.namespace, self._source.default_namespace)
        except (ManifestTextError, InputError) as exc:
            raise ToolError(printable(str(exc))) from exc

    async def _answer(self, question: Question[Any], none: str = "") -> dict[str, Any]:
        """Returns the answer, without text that hides from a person; a refusal becomes a tool's error in the source's
        words, `none` the error without one.
        """
        try:
            answer = await self._answers.ask(question)
        except InputError as exc:
            raise ToolError(printable(str(exc))) from exc
        if answer is None:
            raise ToolError(none)
        plain: dict[str, Any] = printable(msgspec.to_builtins(answer))
        return plain
