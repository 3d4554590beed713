"""How objects point at each other and at parts of each other.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.declaring import keep, named, null, omit, zero
from extender.embedded.schema.types import BOOL, QUANTITY, STRING, STRINGS, ListOf, Struct

# Whole objects

OBJECT_REFERENCE: Final = Struct(
    "io.k8s.api.core.v1.ObjectReference",
    {
        "kind": omit(STRING),
        "namespace": omit(STRING),
        "name": omit(STRING),
        "uid": omit(named("types.UID")),
        "apiVersion": omit(STRING),
        "resourceVersion": omit(STRING),
        "fieldPath": omit(STRING, "The part of the object that is meant, such as spec.containers{name}."),
    },
    "Any object, or a part of it.",
    atomic=True,
)

LOCAL_OBJECT_REFERENCE: Final = Struct(
    "io.k8s.api.core.v1.LocalObjectReference",
    {"name": omit(STRING, default="")},
    "An object in the same namespace. The field says of which kind.",
    atomic=True,
)

TYPED_LOCAL_OBJECT_REFERENCE: Final = Struct(
    "io.k8s.api.core.v1.TypedLocalObjectReference",
    {
        "apiGroup": null(STRING, "Empty or absent: the core group."),
        "kind": zero(STRING, required=True),
        "name": zero(STRING, required=True),
    },
    "An object of any kind in the same namespace.",
    atomic=True,
)

TYPED_OBJECT_REFERENCE: Final = Struct(
    "io.k8s.api.core.v1.TypedObjectReference",
    {
        "apiGroup": null(STRING, "Empty or absent: the core group."),
        "kind": zero(STRING, required=True),
        "name": zero(STRING, required=True),
        "namespace": keep(STRING, "Absent: the same namespace."),
    },
    "An object of any kind, in another namespace if that allows it.",
)

SECRET_REFERENCE: Final = Struct(
    "io.k8s.api.core.v1.SecretReference",
    {
        "name": omit(STRING),
        "namespace": omit(STRING),
    },
    "A secret in any namespace.",
    atomic=True,
)

# Parts of objects, as values of environment variables and files

CONFIG_MAP_KEY_SELECTOR: Final = Struct(
    "io.k8s.api.core.v1.ConfigMapKeySelector",
    {
        "name": omit(STRING, default=""),
        "key": zero(STRING, required=True),
        "optional": keep(BOOL, "Whether it may be missing."),
    },
    "A key of a config map.",
    atomic=True,
)

SECRET_KEY_SELECTOR: Final = Struct(
    "io.k8s.api.core.v1.SecretKeySelector",
    {
        "name": omit(STRING, default=""),
        "key": zero(STRING, required=True),
        "optional": keep(BOOL, "Whether it may be missing."),
    },
    "A key of a secret.",
    atomic=True,
)

FILE_KEY_SELECTOR: Final = Struct(
    "io.k8s.api.core.v1.FileKeySelector",
    {
        "volumeName": zero(STRING, "The volume in which the file is.", required=True),
        "path": zero(STRING, "Where the file is in the volume.", required=True),
        "key": zero(STRING, "The variable in the file.", required=True),
        "optional": keep(BOOL, "Whether it may be missing.", default=False),
    },
    "A variable in an env file.",
    atomic=True,
)

OBJECT_FIELD_SELECTOR: Final = Struct(
    "io.k8s.api.core.v1.ObjectFieldSelector",
    {
        "apiVersion": omit(STRING, "In which version the path is meant. Defaults to v1."),
        "fieldPath": zero(STRING, required=True),
    },
    "A field of the pod itself.",
    atomic=True,
)

RESOURCE_FIELD_SELECTOR: Final = Struct(
    "io.k8s.api.core.v1.ResourceFieldSelector",
    {
        "containerName": omit(STRING, "Needed in volumes; variables are about their own container."),
        "resource": zero(STRING, "Such as limits.cpu.", required=True),
        "divisor": zero(QUANTITY, "The unit in which the value is given. Defaults to 1."),
    },
    "What a container asks for or may use at most.",
    atomic=True,
)

# Places

TOPOLOGY_SELECTOR_LABEL_REQUIREMENT: Final = Struct(
    "io.k8s.api.core.v1.TopologySelectorLabelRequirement",
    {
        "key": zero(STRING, "The label.", required=True),
        "values": null(STRINGS, "One of them must be the value of the label.", required=True),
    },
    "A condition on one label of a place.",
)

TOPOLOGY_SELECTOR_TERM: Final = Struct(
    "io.k8s.api.core.v1.TopologySelectorTerm",
    {"matchLabelExpressions": omit(ListOf(TOPOLOGY_SELECTOR_LABEL_REQUIREMENT), "Conditions that must all hold.")},
    "Places, by their labels.",
    atomic=True,
)
