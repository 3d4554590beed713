"""What nodes say of the containers of a pod.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.containers import RESOURCE_REQUIREMENTS, SIGNAL
from extender.embedded.schema.declaring import RESOURCE_LIST, keep, map_list, named, null, omit, zero
from extender.embedded.schema.types import BOOL, INT32, INT64, STRING, TIME, ListOf, Struct

# States

CONTAINER_STATE_WAITING: Final = Struct(
    "io.k8s.api.core.v1.ContainerStateWaiting",
    {
        "reason": omit(STRING, "A word in CamelCase that says why."),
        "message": omit(STRING, "An explanation for people."),
    },
    "Not started yet.",
)

CONTAINER_STATE_RUNNING: Final = Struct(
    "io.k8s.api.core.v1.ContainerStateRunning",
    {"startedAt": null(TIME)},
    "Started and not ended.",
)

CONTAINER_STATE_TERMINATED: Final = Struct(
    "io.k8s.api.core.v1.ContainerStateTerminated",
    {
        "exitCode": zero(INT32, required=True),
        "signal": omit(INT32, "The signal that ended it."),
        "reason": omit(STRING, "A word in CamelCase that says why."),
        "message": omit(STRING, "The container's last words."),
        "startedAt": null(TIME),
        "finishedAt": null(TIME),
        "containerID": omit(STRING),
    },
    "Ended.",
)

CONTAINER_STATE: Final = Struct(
    "io.k8s.api.core.v1.ContainerState",
    {
        "waiting": keep(CONTAINER_STATE_WAITING),
        "running": keep(CONTAINER_STATE_RUNNING),
        "terminated": keep(CONTAINER_STATE_TERMINATED),
    },
    "One of these. None: waiting.",
)

# What a container got

IMAGE_VOLUME_STATUS: Final = Struct(
    "io.k8s.api.core.v1.ImageVolumeStatus",
    {"imageRef": omit(STRING, "The image with its digest.", required=True)},
)

VOLUME_STATUS: Final = Struct(
    "io.k8s.api.core.v1.VolumeStatus",
    {"image": keep(IMAGE_VOLUME_STATUS)},
    "What became of a volume.",
)

VOLUME_MOUNT_STATUS: Final = Struct(
    "io.k8s.api.core.v1.VolumeMountStatus",
    {
        "name": zero(STRING, required=True),
        "mountPath": zero(STRING, required=True),
        "readOnly": omit(BOOL),
        "recursiveReadOnly": keep(named("v1.RecursiveReadOnlyMode")),
        "volumeStatus": keep(VOLUME_STATUS),
    },
    "What became of a volume mount.",
)

RESOURCE_HEALTH: Final = Struct(
    "io.k8s.api.core.v1.ResourceHealth",
    {
        "resourceID": zero(named("v1.ResourceID"), required=True),
        "health": omit(named("v1.ResourceHealthStatus"), "Healthy, Unhealthy or Unknown."),
        "message": keep(STRING),
    },
    "How well a device is.",
)

RESOURCE_STATUS: Final = Struct(
    "io.k8s.api.core.v1.ResourceStatus",
    {
        "name": zero(named("v1.ResourceName"), "The resource, or claim:NAME/REQUEST.", required=True),
        "resources": omit(map_list(RESOURCE_HEALTH, "resourceID")),
    },
    "How well the devices of a resource are.",
)

LINUX_CONTAINER_USER: Final = Struct(
    "io.k8s.api.core.v1.LinuxContainerUser",
    {
        "uid": zero(INT64, required=True),
        "gid": zero(INT64, required=True),
        "supplementalGroups": omit(ListOf(INT64)),
    },
)

CONTAINER_USER: Final = Struct(
    "io.k8s.api.core.v1.ContainerUser",
    {"linux": keep(LINUX_CONTAINER_USER)},
    "As whom the first process of a container started.",
)

CONTAINER_STATUS: Final = Struct(
    "io.k8s.api.core.v1.ContainerStatus",
    {
        "name": zero(STRING, required=True),
        "state": zero(CONTAINER_STATE),
        "lastState": zero(CONTAINER_STATE, "How it ended the last time."),
        "ready": zero(BOOL, "Whether its readiness probe succeeds.", required=True),
        "restartCount": zero(INT32, required=True),
        "image": zero(STRING, required=True),
        "imageID": zero(STRING, required=True),
        "containerID": omit(STRING, "RUNTIME://ID."),
        "started": keep(BOOL, "Whether it runs and its startup probe succeeded."),
        "allocatedResources": omit(RESOURCE_LIST, "What the node set aside."),
        "resources": keep(RESOURCE_REQUIREMENTS, "What the container runs with."),
        "volumeMounts": omit(map_list(VOLUME_MOUNT_STATUS, "mountPath"), patch_key="mountPath", patch_strategy="merge"),
        "user": keep(CONTAINER_USER),
        "allocatedResourcesStatus": omit(map_list(RESOURCE_STATUS, "name"), patch_key="name", patch_strategy="merge"),
        "stopSignal": keep(SIGNAL),
    },
    "How a container is doing.",
)
