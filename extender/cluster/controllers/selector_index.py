"""An index of selectors: which workloads select objects with which labels, answered once for each set of labels."""

from collections.abc import Sequence
from typing import final
from weakref import WeakKeyDictionary

from extender.cluster.api_resources import Object
from extender.cluster.controllers.seen_objects import Key, Labels
from extender.values.objects.label_selectors import NOTHING, Selector
from extender.values.workloads.selectors import selector_in


@final
class SelectorIndex:
    """The selectors of one kind of workload."""

    def __init__(self) -> None:
        self._selectors: dict[str, dict[Key, Selector]] = {}
        self._answers: dict[str, WeakKeyDictionary[Labels, Sequence[Key]]] = {}

    def put(self, key: Key, content: Object) -> None:
        """Takes note of a workload."""
        selector = selector_in(content)
        selectors = self._selectors.setdefault(key[0], {})
        if selectors.get(key) != selector:
            selectors[key] = selector
            self._answers.pop(key[0], None)

    def remove(self, key: Key) -> None:
        selectors = self._selectors.get(key[0], {})
        if selectors.pop(key, None) is not None:
            self._answers.pop(key[0], None)
        if not selectors:
            self._selectors.pop(key[0], None)

    def selector(self, key: Key) -> Selector:
        """Returns the selector of a workload; one that selects nothing if the workload is unknown."""
        return self._selectors.get(key[0], {}).get(key, NOTHING)

    def selecting(self, namespace: str, labels: Labels) -> Sequence[Key]:
        """Returns the workloads of the namespace that select objects with these labels."""
        selectors = self._selectors.get(namespace)
        if not selectors:
            return ()
        answers = self._answers.setdefault(namespace, WeakKeyDictionary())
        answer = answers.get(labels)
        if answer is None:
            answer = answers[labels] = [key for key, selector in selectors.items() if selector.matches(labels.of)]
        return answer
