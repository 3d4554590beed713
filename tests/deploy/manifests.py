"""The manifests of `deploy/kubernetes`, and the pod that a manifest makes."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

Object = dict[str, Any]

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"

ACCOUNT: Final = "system:serviceaccount:kube-system:reprieve"
"""The user that the service account is to an API server."""
KUBE_SCHEDULERS_OWN: Final = (
    "system:kube-scheduler",
    "system:volume-scheduler",
    "extension-apiserver-authentication-reader",
)
"""Roles of every cluster, which a kube-scheduler needs."""


@cache
def shipped(variant: str) -> tuple[Object, ...]:
    """Returns the objects of a variant's manifest."""
    return objects_of((FOLDER / variant / "reprieve.yaml").read_text())


def objects_of(text: str) -> tuple[Object, ...]:
    return tuple(obj for obj in yaml.safe_load_all(text) if obj)


def one(kind: str, objects: Iterable[Object]) -> Object:
    (sole_object,) = (obj for obj in objects if obj["kind"] == kind)
    return sole_object


def pod_spec(objects: Iterable[Object]) -> Object:
    spec: Object = one("Deployment", objects)["spec"]["template"]["spec"]
    return spec


def container(objects: Iterable[Object], name: str = "reprieve") -> Object:
    (sole_container,) = (item for item in pod_spec(objects)["containers"] if item["name"] == name)
    return dict(sole_container)


def reprieves_own(objects: Iterable[Object]) -> list[Object]:
    """A manifest without the bindings that a kube-scheduler in the same pod needs."""
    return [obj for obj in objects if role_of(obj) not in KUBE_SCHEDULERS_OWN]


@cache
def released_as(variant: str) -> tuple[Object, ...]:
    """A variant's manifest under names of its own, so that one API server can have several variants."""

    def renamed(reference: Object) -> Object:
        ours = reference["name"].startswith("reprieve")
        return (
            reference | {"name": reference["name"].replace("reprieve", f"reprieve-{variant}", 1)} if ours else reference
        )

    return tuple(
        obj
        | {"metadata": renamed(obj["metadata"])}
        | (
            {"roleRef": renamed(obj["roleRef"]), "subjects": [renamed(subject) for subject in obj["subjects"]]}
            if role_of(obj)
            else {}
        )
        for obj in shipped(variant)
    )


def account_of(variant: str) -> str:
    """The user that the service account of `released_as` is."""
    return f"{ACCOUNT}-{variant}"


def role_of(obj: Mapping[str, Any]) -> str:
    """The name of the role that a binding binds; empty of what is no binding."""
    return str(obj.get("roleRef", {}).get("name", ""))
