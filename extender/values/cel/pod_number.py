"""PodNumber: a number that a CEL expression makes of a pod, such as what its eviction costs.

The expression is the operator's, from the configuration; only the pod is a tenant's.
"""

import math
from typing import Any, Final, final

from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)
from cel_expr_python.ext import ext_optional, ext_strings  # type: ignore[import-untyped]

from extender.values import limits
from extender.values.cel.errors import CelError, CompileError
from extender.values.objects.gpu_requests import gpus_of, requests_of
from extender.values.objects.pod import Pod

_TEXTS: Final = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
_VARIABLES: Final = {
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "namespaceName": cel.Type.STRING,
    "priorityClassName": cel.Type.STRING,
    "priority": cel.Type.INT,
    "requests": cel.Type.Map(cel.Type.STRING, cel.Type.DOUBLE),
    "gpus": cel.Type.DOUBLE,
}
_ENVIRONMENT: Final = cel.NewEnv(
    variables=_VARIABLES, extensions=[ext_strings.ExtStrings(), ext_optional.ExtOptional()]
)
_NUMBERS: Final = (cel.Type.DOUBLE, cel.Type.INT, cel.Type.UINT)


@final
class PodNumber:
    """A compiled expression over a pod's labels, annotations, priority and requests.

    Variables: `labels` and `annotations`, `namespaceName`, `priorityClassName`, `priority`, `requests` by resource in
    its unit (cores, bytes) and `gpus`, the sum of the requests for resources whose names end in /gpu.
    """

    __slots__ = ("_expression",)

    def __init__(self, text: str) -> None:
        """Compiles the expression. Raises CompileError if it is invalid, or is no number."""
        try:
            self._expression = _ENVIRONMENT.compile(text)
        except RuntimeError as exc:
            raise CompileError(str(exc)) from exc
        kind = self._expression.return_type()
        if kind not in _NUMBERS:
            raise CompileError(f"must be a number, and is of type {kind}")

    def of(self, pod: Pod) -> float:
        """Returns the number for this pod. Raises CelError if there is none, or no finite one, and QuantityError."""
        meta = pod.metadata
        if (
            sum(len(key) + len(value) for texts in (meta.labels, meta.annotations) for key, value in texts.items())
            > limits.EXPRESSION_POD_CHARACTERS
        ):
            raise CelError("labels and annotations of the pod are too long")
        requests = requests_of(pod)
        variables: dict[str, Any] = {
            "labels": meta.labels,
            "annotations": meta.annotations,
            "namespaceName": meta.namespace,
            "priorityClassName": pod.spec.priority_class_name,
            "priority": pod.priority,
            "requests": requests,
            "gpus": gpus_of(requests),
        }
        try:
            result = self._expression.eval(data=variables)
            number = float(result.value())
        except (RuntimeError, TypeError, ValueError) as exc:
            raise CelError(str(exc)) from exc
        if result.type() not in _NUMBERS or not math.isfinite(number):
            raise CelError(f"the result is no finite number: {result.value()}")
        return number
