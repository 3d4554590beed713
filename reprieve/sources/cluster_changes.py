"""Changes of a cluster that somebody else watches: objects, and events of watches."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from extender.answers.questions import Questions
from extender.engine.cache import CacheError
from extender.values.objects.pod import Pod
from reprieve.errors import StartUpError
from reprieve.sources.manifest_files import state_of
from reprieve.sources.saved_clusters import gaps_of, narrow


def updated(questions: Questions, changes: Iterable[object]) -> Questions:
    """Returns questions about a copy of the cluster after changes. All objects that stay are shared.

    Raises StartUpError or DecodeError for a change of the wrong form.
    """
    before = questions.about
    # What the copy has from this one is not looked for again: the columns as they are laid out, and the names of pods.
    with suppress(CacheError):  # where events of a watch contradict each other, the next snapshot has recovered
        before.cache.update_snapshot()
    before.named("")
    cluster, pods = before.fork(), list[Pod]()
    for is_gone, obj in map(_change_of, changes):
        for item in state_of([obj]).items():
            old = (cluster.named(item.key) if isinstance(item, Pod) else None) or item
            cluster.changed(old, None if is_gone else item)
            pods += [item] if isinstance(item, Pod) else []
    cluster.draw_other_uids(pods)
    narrow(cluster, gaps_of(before))
    return Questions(questions.configuration, cluster, questions.admits)


def _change_of(change: object) -> tuple[bool, dict[str, Any]]:
    """Returns whether an object is gone, and the object; an empty one for an event that changes nothing."""
    event, obj = "", change
    if isinstance(change, Mapping) and "object" in change:
        event, obj = str(change.get("type") or ""), change.get("raw_object", change["object"])
    if event == "BOOKMARK":
        return False, {}
    if event not in ("", "ADDED", "MODIFIED", "DELETED"):
        why = obj.get("message") if isinstance(obj, Mapping) else obj
        raise StartUpError(f"an event of type {event:.80} is no change: {why!s:.200}; list the objects anew")
    if not isinstance(obj, Mapping) or not isinstance(obj.get("kind"), str):
        raise StartUpError(f"{obj!r:.80} is no object with a kind: give objects or events as the API has them")
    return event == "DELETED", dict(obj)
