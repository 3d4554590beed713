"""Questions that are answered and forgotten: who is it, and may they?"""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, named, omit, zero
from extender.embedded.schema.meta import LABEL_SELECTOR_REQUIREMENT, OBJECT_META
from extender.embedded.schema.types import BOOL, STRING, STRINGS, ListOf, MapOf, Struct

_AUDIENCES: Final = "For whom the token is meant."

USER_INFO: Final = Struct(
    "io.k8s.api.authentication.v1.UserInfo",
    {
        "username": omit(STRING),
        "uid": omit(STRING, "Tells people of the same name apart over time."),
        "groups": omit(STRINGS),
        "extra": omit(MapOf(ListOf(STRING), go_type="map[string]v1.ExtraValue"), "What else is known of them."),
    },
    "Somebody who asks the API.",
)

TOKEN_REVIEW: Final = Struct(
    "io.k8s.api.authentication.v1.TokenReview",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.authentication.v1.TokenReviewSpec",
                {"token": omit(STRING, "The token as it was sent.", required=True), "audiences": omit(STRINGS, _AUDIENCES)},
            ),
            required=True,
        ),
        "status": zero(
            Struct(
                "io.k8s.api.authentication.v1.TokenReviewStatus",
                {
                    "authenticated": omit(BOOL, "The token is somebody's."),
                    "user": zero(USER_INFO),
                    "audiences": omit(STRINGS, _AUDIENCES),
                    "error": omit(STRING, "Why it could not be checked."),
                },
            )
        ),
    },
    "Asks whose token this is.",
)

_KEY: Final = zero(STRING, "The field or label.", required=True)

FIELD_SELECTOR_REQUIREMENT: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement",
    {
        "key": _KEY,
        "operator": zero(named("v1.FieldSelectorOperator"), "In, NotIn, Exists or DoesNotExist.", required=True),
        "values": omit(STRINGS, "For In and NotIn only."),
    },
)

_RAW_SELECTOR: Final = omit(STRING, "The selector as it stands in a query. Not with requirements.")

RESOURCE_ATTRIBUTES: Final = Struct(
    "io.k8s.api.authorization.v1.ResourceAttributes",
    {
        "namespace": omit(STRING, "Empty for what has no namespace, and for all of them."),
        "verb": omit(STRING, "Such as get, list or create. * is all."),
        "group": omit(STRING, "* is all."),
        "version": omit(STRING, "* is all."),
        "resource": omit(STRING, "In the plural. * is all."),
        "subresource": omit(STRING),
        "name": omit(STRING, "Empty is all."),
        "fieldSelector": keep(
            Struct(
                "io.k8s.api.authorization.v1.FieldSelectorAttributes",
                {"rawSelector": _RAW_SELECTOR, "requirements": omit(ListOf(FIELD_SELECTOR_REQUIREMENT))},
            ),
            "Only objects whose fields are like this.",
        ),
        "labelSelector": keep(
            Struct(
                "io.k8s.api.authorization.v1.LabelSelectorAttributes",
                {"rawSelector": _RAW_SELECTOR, "requirements": omit(ListOf(LABEL_SELECTOR_REQUIREMENT))},
            ),
            "Only objects whose labels are like this.",
        ),
    },
    "Something to be done to objects.",
)

NON_RESOURCE_ATTRIBUTES: Final = Struct(
    "io.k8s.api.authorization.v1.NonResourceAttributes",
    {"path": omit(STRING), "verb": omit(STRING, "A method of HTTP in small letters.")},
    "Something to be asked of a path that leads to no objects.",
)

SUBJECT_ACCESS_REVIEW_STATUS: Final = Struct(
    "io.k8s.api.authorization.v1.SubjectAccessReviewStatus",
    {
        "allowed": zero(BOOL, required=True),
        "denied": omit(BOOL, "Nobody else may allow it either."),
        "reason": omit(STRING, "Why so."),
        "evaluationError": omit(STRING, "What went wrong on the way to the answer."),
    },
)

_WHAT: Final = {"resourceAttributes": keep(RESOURCE_ATTRIBUTES), "nonResourceAttributes": keep(NON_RESOURCE_ATTRIBUTES)}

SELF_SUBJECT_ACCESS_REVIEW: Final = Struct(
    "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(Struct("io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec", _WHAT), required=True),
        "status": zero(SUBJECT_ACCESS_REVIEW_STATUS),
    },
    "Asks whether the one who asks may do something.",
)

SUBJECT_ACCESS_REVIEW: Final = Struct(
    "io.k8s.api.authorization.v1.SubjectAccessReview",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.authorization.v1.SubjectAccessReviewSpec",
                _WHAT
                | {
                    "user": omit(STRING),
                    "groups": omit(STRINGS),
                    "extra": omit(MapOf(ListOf(STRING), go_type="map[string]v1.ExtraValue"), "What else is known of the user."),
                    "uid": omit(STRING),
                },
            ),
            required=True,
        ),
        "status": zero(SUBJECT_ACCESS_REVIEW_STATUS),
    },
    "Asks whether somebody may do something.",
)
