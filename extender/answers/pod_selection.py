"""Which pods a rule is about: labels as `kubectl -l` has them, and a few things that pods have besides."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from extender.objects.label_selectors import Selector, SelectorError
from extender.objects.label_syntax import parse_selector
from extender.objects.pod import Pod

_BESIDES: Final = ("name", "namespace", "priorityClass")


@final
@dataclass(frozen=True, slots=True)
class PodSelection:
    """Pods with these labels, and with these names."""

    text: str
    labels: Selector
    besides: Mapping[str, str]

    @staticmethod
    def of(text: str) -> "PodSelection":
        """The selection that is written.

        Raises:
            SelectorError: it cannot be read.
        """
        besides: dict[str, str] = {}
        labels: list[str] = []
        for term in _terms(text):
            key, is_equal, value = term.replace("==", "=").partition("=")
            if key.strip() in _BESIDES and is_equal:
                besides[key.strip()] = value.strip()
            else:
                labels.append(term)
        return PodSelection(text, parse_selector(",".join(labels)), besides)

    def selects(self, pod: Pod) -> bool:
        """Whether the pod is one of them."""
        has = {"name": pod.name, "namespace": pod.namespace, "priorityClass": pod.spec.priority_class_name}
        return all(has[key] == value for key, value in self.besides.items()) and self.labels.matches(pod.labels)


def _terms(text: str) -> list[str]:
    """What stands between the commas; those in brackets are part of a term."""
    terms, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            terms.append(text[begin:at])
            begin = at + 1
    terms.append(text[begin:])
    if not any(term.strip() for term in terms):
        raise SelectorError("it selects nothing: give labels as in app=web")
    return terms
