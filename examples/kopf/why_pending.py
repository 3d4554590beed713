"""An operator that writes on each pending pod why it is pending, and what would help.

pip install kopf, then kopf run --all-namespaces examples/kopf/why_pending.py: it uses the kubeconfig that kubectl does.
kopf calls handlers that are not async in threads of their own, and two threads may not use one cluster.
"""

import asyncio
from typing import Any

import kopf

from reprieve import Cluster, ReprieveError

NOTE = "example.com/why-pending"


@kopf.on.startup()
async def connect(memo: kopf.Memo, **_: Any) -> None:
    memo.cluster = await asyncio.to_thread(Cluster.connect)


@kopf.on.event("v1", "nodes")
@kopf.on.event("v1", "pods")
async def keep_fresh(event: kopf.RawEvent, memo: kopf.Memo, **_: Any) -> None:
    """Takes over what kopf watches anyway; whoever needs budgets, claims or classes to be fresh watches these, too."""
    memo.cluster = memo.cluster.updated([event])


@kopf.on.event("v1", "pods", field="spec.nodeName", value=kopf.ABSENT)
async def explain(
    namespace: str | None, name: str, meta: kopf.Meta, memo: kopf.Memo, patch: kopf.Patch, logger: kopf.Logger, **_: Any
) -> None:
    try:
        with memo.cluster.trial() as trial:
            answer = trial.why(f"{namespace}/{name}")
    except ReprieveError as exc:  # it is gone, or has a node by now
        logger.info("%s", exc)
        return
    text = " ".join([answer.summary, *(f"It would fit if you {fix.text}." for fix in answer.fixes)])
    if meta.annotations.get(NOTE) != text:
        patch.metadata.annotations[NOTE] = text
