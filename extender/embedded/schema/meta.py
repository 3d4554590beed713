"""What all kinds share: metadata, selectors of labels, conditions, options of deletes, and the Status of an answer.

Upstream: apimachinery/pkg/apis/meta/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, map_list, named, null, omit, set_of, zero
from extender.embedded.schema.types import BOOL, INT32, INT64, STRING, STRING_MAP, STRINGS, TIME, ListOf, Preserve, Struct

_UID: Final = named("types.UID")
_CONDITION_STATUS: Final = named("v1.ConditionStatus")

# Every object

OWNER_REFERENCE: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    {
        "apiVersion": zero(STRING, required=True),
        "kind": zero(STRING, required=True),
        "name": zero(STRING, required=True),
        "uid": zero(_UID, required=True),
        "controller": keep(BOOL, "Whether this owner is the one that steers the object."),
        "blockOwnerDeletion": keep(BOOL, "Whether the owner, deleted in the foreground, waits until this object is gone."),
    },
    "An object in the same namespace, or in none, without which this one is not needed.",
    atomic=True,
)

MANAGED_FIELDS_ENTRY: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    {
        "manager": omit(STRING, "Who."),
        "operation": omit(named("v1.ManagedFieldsOperationType"), "How: Apply or Update."),
        "apiVersion": omit(STRING, "The group and version in which the fields are named."),
        "time": keep(TIME, "When fields were last added to or changed in this entry."),
        "fieldsType": omit(STRING, "The form of fieldsV1."),
        "fieldsV1": keep(Preserve("v1.FieldsV1"), "The fields, as a tree."),
        "subresource": omit(STRING, "Through which subresource, if any."),
    },
    "The fields that somebody set and therefore answers for.",
)

OBJECT_META: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    {
        "name": omit(STRING, "Unique within the namespace. Cannot be updated."),
        "generateName": omit(STRING, "The start of a name that the server completes, where no name is given."),
        "namespace": omit(STRING, "The space in which the name is unique. Cannot be updated."),
        "selfLink": omit(STRING, "No longer filled in."),
        "uid": omit(_UID, "Tells this object from all others, past and future. Set by the server."),
        "resourceVersion": omit(STRING, "Changes whenever the object does. Opaque."),
        "generation": omit(INT64, "Counts the changes of what is wanted."),
        "creationTimestamp": omit(TIME, "When the server created the object."),
        "deletionTimestamp": keep(TIME, "When the object is to be gone. Set by the server once a delete was asked for."),
        "deletionGracePeriodSeconds": keep(INT64, "How long the object may take to end well."),
        "labels": omit(STRING_MAP, "Keys and values by which objects are selected."),
        "annotations": omit(STRING_MAP, "Keys and values for whoever understands them."),
        "ownerReferences": omit(
            map_list(OWNER_REFERENCE, "uid"),
            "Objects that this one depends on: without any of them it is collected.",
            patch_key="uid",
            patch_strategy="merge",
        ),
        "finalizers": omit(set_of(STRING), "Who must have done their part before the object can go.", patch_strategy="merge"),
        "managedFields": omit(ListOf(MANAGED_FIELDS_ENTRY), "Who set which fields. Kept by the server."),
    },
    "What every stored object has.",
)

# Selectors and conditions

LABEL_SELECTOR_REQUIREMENT: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement",
    {
        "key": zero(STRING, "The label.", required=True),
        "operator": zero(named("v1.LabelSelectorOperator"), "In, NotIn, Exists or DoesNotExist.", required=True),
        "values": omit(STRINGS, "At least one for In and NotIn, none for Exists and DoesNotExist."),
    },
    "A condition on one label.",
)

LABEL_SELECTOR: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    {
        "matchLabels": omit(STRING_MAP, "Labels that must have just these values."),
        "matchExpressions": omit(ListOf(LABEL_SELECTOR_REQUIREMENT), "Conditions that must all hold."),
    },
    "Selects objects by label. An empty one selects all of them.",
    atomic=True,
)

CONDITION: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.Condition",
    {
        "type": zero(STRING, required=True),
        "status": zero(_CONDITION_STATUS, "True, False or Unknown.", required=True),
        "observedGeneration": omit(INT64, "The generation of the object that this was said of."),
        "lastTransitionTime": null(TIME, "When the status last changed.", required=True),
        "reason": zero(STRING, "A word in CamelCase that says why.", required=True),
        "message": zero(STRING, "An explanation for people.", required=True),
    },
    "One aspect of the state of an object.",
)

# Deletes

PRECONDITIONS: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
    {
        "uid": keep(_UID),
        "resourceVersion": keep(STRING),
    },
    "What an object must be for a delete to go on.",
)

DELETE_OPTIONS: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    TYPE_META
    | {
        "gracePeriodSeconds": keep(INT64, "How long the object may take to end well. 0: delete at once."),
        "preconditions": keep(PRECONDITIONS, "What must hold, or else the delete is refused as a conflict."),
        "orphanDependents": keep(BOOL, "Replaced by propagationPolicy."),
        "propagationPolicy": keep(named("v1.DeletionPropagation"), "What becomes of dependents: Orphan, Background or Foreground."),
        "dryRun": omit(STRINGS, "All: do everything but store the result."),
        "ignoreStoreReadErrorWithClusterBreakingPotential": keep(BOOL, "Delete even what can no longer be read."),
    },
    "How to delete.",
)

# Answers

LIST_META: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",
    {
        "selfLink": omit(STRING, "No longer filled in."),
        "resourceVersion": omit(STRING, "How new the list is; where a watch may go on."),
        "continue": omit(STRING, "Asks for the next page. Absent on the last one."),
        "remainingItemCount": keep(INT64, "How many items follow on later pages, if that is known."),
    },
    "What every list has.",
)

STATUS_CAUSE: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause",
    {
        "reason": omit(named("v1.CauseType"), "For machines."),
        "message": omit(STRING, "For people."),
        "field": omit(STRING, "The field at fault, as a path."),
    },
    "One of the errors behind a refusal.",
)

STATUS_DETAILS: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails",
    {
        "name": omit(STRING),
        "group": omit(STRING),
        "kind": omit(STRING),
        "uid": omit(_UID),
        "causes": omit(ListOf(STATUS_CAUSE), "All that is wrong."),
        "retryAfterSeconds": omit(INT32, "How long to wait before trying again."),
    },
    "What a Status is about.",
)

STATUS: Final = Struct(
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    TYPE_META
    | {
        "metadata": zero(LIST_META),
        "status": omit(STRING, "Success or Failure."),
        "message": omit(STRING, "For people."),
        "reason": omit(named("v1.StatusReason"), "For machines: why it failed, in one word."),
        "details": keep(STATUS_DETAILS),
        "code": omit(INT32, "The HTTP status."),
    },
    "The answer to a call that does not answer with another object.",
)
