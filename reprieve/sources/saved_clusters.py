"""Clusters in a form of their own, which is read in less time than objects as the API has them: what is in files that
end in .reprieve, and what is sent to other processes.

It is one JSON document, which begins with the version of its form. Nothing in it is run.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, final

import msgspec

from extender import rules
from extender.answers.questions import Questions
from extender.engine.cache.cluster import Cluster, not_at_all
from extender.rules.claim_templates import ClaimTemplates
from extender.values import limits
from extender.values.concurrency.process import collector_paused
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.golang.json_bytes import check_number_of_values
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import replaced
from extender.values.objects.kinds import KINDS, kind_of
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod
from extender.values.reasons import InputError
from reprieve.errors import StartUpError

FORM: Final = 1
_HEAD: Final = re.compile(rb'\{"reprieve":(\d{1,9}),')

Gaps = Mapping[str, tuple[str, frozenset[str]]]
"""The plural of each kind that could not be listed -> why, and the namespaces in which it could."""
OwnParts = tuple[int, str, str, str, str, str | None, str | None, list[Condition]]
"""The parts of one pod: place of its model in `models`, name, UID, resourceVersion, node, creation and start, and
conditions.
"""


@final
class _Saved(msgspec.Struct, frozen=True, gc=False):
    reprieve: int
    """The version of the form."""
    configuration: dict[str, Any]
    features: FeatureGates
    notes: tuple[str, ...]
    gaps: Gaps | None
    """None for a cluster that was not listed."""
    templates: Sequence[dict[str, Any]]
    objects: ClusterState
    """All but the pods."""
    models: Sequence[Pod]
    """Pods without their own parts; equal ones once."""
    pods: Sequence[OwnParts]


def packed(questions: Questions, notes: Sequence[str]) -> bytes:
    """Returns a cluster in its own form. Raises ConfigErrors."""
    lists: dict[str, list[Any]] = {"pods": []}
    for item in questions.items():
        lists.setdefault(kind_of(item).field, []).append(item)
    models: dict[bytes, int] = {}
    pods = [_parts(pod, models) for pod in lists.pop("pods")]
    arguments = questions.admits.args if isinstance(questions.admits, partial) else ()
    saved = _Saved(
        FORM,
        written(questions.configuration),
        questions.configuration.feature_gates,
        tuple(notes),
        gaps_of(questions.about),
        [
            dict(obj)
            for templates in arguments
            if isinstance(templates, ClaimTemplates)
            for obj in templates.found.values()
        ],
        ClusterState(**lists),
        [msgspec.json.decode(model, type=Pod) for model in models],
        pods,
    )
    return msgspec.json.encode(saved, order="deterministic")


def unpacked(data: bytes, source: str, other: Configuration | None = None) -> tuple[Questions, Sequence[str]]:
    """Returns questions about a cluster that was packed, and its notes; `other` takes the place of its configuration.

    Raises StartUpError, which calls the data `source`.
    """
    form = _HEAD.match(data)
    if form is not None and int(form[1]) != FORM:
        raise StartUpError(
            f"{source}: a cluster in form {int(form[1])}, and this version of Reprieve reads form {FORM}; save it as "
            ".json where it was made, which every version reads"
        )
    try:
        check_number_of_values(data, limits.STATE_FILE_VALUES, "the file")
        with collector_paused():
            saved = msgspec.json.decode(data, type=_Saved)
            configuration = other or load(msgspec.json.encode(saved.configuration), saved.features)
            pods = [_whole(saved.models[parts[0]], parts) for parts in saved.pods]
            cluster = Cluster.of(replace(saved.objects, pods=pods))
            narrow(cluster, saved.gaps)
            admits = partial(rules.trial, ClaimTemplates(saved.templates), features=configuration.feature_gates)
            return Questions(configuration, cluster, admits), saved.notes
    except (InputError, ValueError, RecursionError, LookupError) as exc:
        raise StartUpError(f"{source}: not a whole cluster as Reprieve saves it: {exc}; save it again") from exc


def _parts(pod: Pod, models: dict[bytes, int]) -> OwnParts:
    meta, node, status = pod.metadata, pod.spec.node_name, pod.status
    model = msgspec.json.encode(_whole(pod, (0, "", "", "", "", None, None, [])))
    times = meta.creation_timestamp, status.start_time
    place = models.setdefault(model, len(models))
    return place, meta.name, meta.uid, meta.resource_version, node, *times, status.conditions


def _whole(model: Pod, parts: OwnParts) -> Pod:
    _, name, uid, version, node, created, started, conditions = parts
    return Pod(
        replaced(model.metadata, name=name, uid=uid, resource_version=version, creation_timestamp=created),
        replaced(model.spec, node_name=node),
        replaced(model.status, start_time=started, conditions=conditions),
    )


def gaps_of(cluster: Cluster) -> Gaps | None:
    if cluster.narrow is not_at_all:
        return None
    from reprieve.sources.not_known import Narrowing  # noqa: PLC0415 - it loads a client, which most clusters do not need

    gaps = cluster.narrow.gaps if isinstance(cluster.narrow, Narrowing) else {}
    return {plural: (gap.why, gap.namespaces) for plural, gap in gaps.items()}


def narrow(cluster: Cluster, gaps: Gaps | None) -> None:
    """Makes plugins that judge the cluster say what could not be listed."""
    if gaps is not None:
        from reprieve.sources.listing import Gap  # noqa: PLC0415 - as above
        from reprieve.sources.not_known import Narrowing  # noqa: PLC0415

        kinds = {kind.plural: kind for kind in KINDS}
        listing_gaps = {plural: Gap(kinds[plural], why, where) for plural, (why, where) in gaps.items()}
        cluster.narrow = Narrowing(listing_gaps, cluster)
