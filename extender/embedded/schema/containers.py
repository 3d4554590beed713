"""Containers of pods: what runs, with which variables, amounts, files and rights, and how it is looked after.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.declaring import RESOURCE_LIST, keep, map_list, named, null, omit, set_of, zero
from extender.embedded.schema.references import (
    CONFIG_MAP_KEY_SELECTOR,
    FILE_KEY_SELECTOR,
    OBJECT_FIELD_SELECTOR,
    RESOURCE_FIELD_SELECTOR,
    SECRET_KEY_SELECTOR,
)
from extender.embedded.schema.types import BOOL, INT32, INT64, INT_OR_STRING, STRING, STRINGS, ListOf, Struct

_RESOURCE_NAME: Final = named("v1.ResourceName")
_REAL_TIME_SIGNALS: Final = (
    "SIGRTMIN",
    *(f"SIGRTMIN+{above}" for above in range(1, 16)),
    *(f"SIGRTMAX-{below}" for below in range(14, 0, -1)),
    "SIGRTMAX",
)
SIGNAL: Final = named(
    "v1.Signal",
    *("SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO", "SIGIOT"),
    *("SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM"),
    *("SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ"),
    *_REAL_TIME_SIGNALS,
)

# Variables

ENV_VAR_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.EnvVarSource",
    {
        "fieldRef": keep(OBJECT_FIELD_SELECTOR),
        "resourceFieldRef": keep(RESOURCE_FIELD_SELECTOR),
        "configMapKeyRef": keep(CONFIG_MAP_KEY_SELECTOR),
        "secretKeyRef": keep(SECRET_KEY_SELECTOR),
        "fileKeyRef": keep(FILE_KEY_SELECTOR),
    },
    "Where the value of a variable comes from. One of these.",
)

ENV_VAR: Final = Struct(
    "io.k8s.api.core.v1.EnvVar",
    {
        "name": zero(STRING, required=True),
        "value": omit(STRING, "The value; $(NAME) stands for another variable."),
        "valueFrom": keep(ENV_VAR_SOURCE, "Where the value comes from, if it is not given."),
    },
    "A variable in the environment of a container.",
)

CONFIG_MAP_ENV_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.ConfigMapEnvSource",
    {
        "name": omit(STRING, default=""),
        "optional": keep(BOOL, "Whether it may be missing."),
    },
    "A config map whose keys become variables.",
)

SECRET_ENV_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.SecretEnvSource",
    {
        "name": omit(STRING, default=""),
        "optional": keep(BOOL, "Whether it may be missing."),
    },
    "A secret whose keys become variables.",
)

ENV_FROM_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.EnvFromSource",
    {
        "prefix": omit(STRING, "What the names of the variables begin with."),
        "configMapRef": keep(CONFIG_MAP_ENV_SOURCE),
        "secretRef": keep(SECRET_ENV_SOURCE),
    },
    "Where many variables come from.",
)

# Amounts

RESOURCE_CLAIM: Final = Struct(
    "io.k8s.api.core.v1.ResourceClaim",
    {
        "name": zero(STRING, "One of the pod's resourceClaims.", required=True),
        "request": omit(STRING, "One of the claim's requests. Empty: all of them."),
    },
    "Devices of the pod that a container may use.",
)

RESOURCE_REQUIREMENTS: Final = Struct(
    "io.k8s.api.core.v1.ResourceRequirements",
    {
        "limits": omit(RESOURCE_LIST, "The most it may use."),
        "requests": omit(RESOURCE_LIST, "What is set aside for it. Defaults to the limits."),
        "claims": omit(map_list(RESOURCE_CLAIM, "name"), "Claimed devices."),
    },
    "How much of what is needed.",
)

CONTAINER_RESIZE_POLICY: Final = Struct(
    "io.k8s.api.core.v1.ContainerResizePolicy",
    {
        "resourceName": zero(_RESOURCE_NAME, "cpu or memory.", required=True),
        "restartPolicy": zero(named("v1.ResourceResizeRestartPolicy"), "NotRequired or RestartContainer.", required=True),
    },
    "Whether a container starts again when the amount of a resource changes.",
)

# Restarts

CONTAINER_RESTART_RULE_ON_EXIT_CODES: Final = Struct(
    "io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes",
    {
        "operator": omit(named("v1.ContainerRestartRuleOnExitCodesOperator"), "In or NotIn.", required=True),
        "values": omit(set_of(INT32)),
    },
    "Exit codes to which a rule applies.",
)

CONTAINER_RESTART_RULE: Final = Struct(
    "io.k8s.api.core.v1.ContainerRestartRule",
    {
        "action": omit(named("v1.ContainerRestartRuleAction"), "Restart or RestartAllContainers.", required=True),
        "exitCodes": keep(CONTAINER_RESTART_RULE_ON_EXIT_CODES),
    },
    "What follows the end of a container.",
)

# Files

VOLUME_MOUNT: Final = Struct(
    "io.k8s.api.core.v1.VolumeMount",
    {
        "name": zero(STRING, "One of the pod's volumes.", required=True),
        "readOnly": omit(BOOL),
        "recursiveReadOnly": keep(named("v1.RecursiveReadOnlyMode"), "Whether what is mounted below is read-only too."),
        "mountPath": zero(STRING, "Where the container sees it.", required=True),
        "subPath": omit(STRING, "The part of the volume that is mounted. Empty: its root."),
        "mountPropagation": keep(
            named("v1.MountPropagationMode", "None", "HostToContainer", "Bidirectional"),
            "Whether later mounts on one side are seen on the other.",
        ),
        "subPathExpr": omit(STRING, "As subPath, with $(NAME) for variables."),
    },
    "A volume in the file system of a container.",
)

VOLUME_DEVICE: Final = Struct(
    "io.k8s.api.core.v1.VolumeDevice",
    {
        "name": zero(STRING, "A volume of the pod that is a claim.", required=True),
        "devicePath": zero(STRING, "Where the container sees it.", required=True),
    },
    "A raw block device in a container.",
)

CONTAINER_PORT: Final = Struct(
    "io.k8s.api.core.v1.ContainerPort",
    {
        "name": omit(STRING, "A name for services to use. Unique in the pod."),
        "hostPort": omit(INT32, "The port of the node that leads here."),
        "containerPort": zero(INT32, "The port in the pod.", required=True),
        "protocol": omit(named("v1.Protocol", "TCP", "UDP", "SCTP"), default="TCP"),
        "hostIP": omit(STRING, "The address of the node to which hostPort belongs. Empty: all."),
    },
    "A port on which a container listens.",
)

# What is done to a container

EXEC_ACTION: Final = Struct(
    "io.k8s.api.core.v1.ExecAction",
    {"command": omit(STRINGS, "Program and arguments; no shell. Good if it ends with 0.")},
    "Runs a program in the container.",
)

HTTP_HEADER: Final = Struct(
    "io.k8s.api.core.v1.HTTPHeader",
    {
        "name": zero(STRING, required=True),
        "value": zero(STRING, required=True),
    },
)

HTTP_GET_ACTION: Final = Struct(
    "io.k8s.api.core.v1.HTTPGetAction",
    {
        "path": omit(STRING),
        "port": zero(INT_OR_STRING, "Number or name.", required=True),
        "host": omit(STRING, "Defaults to the pod."),
        "scheme": omit(named("v1.URIScheme", "HTTP", "HTTPS")),
        "httpHeaders": omit(ListOf(HTTP_HEADER)),
    },
    "Asks by HTTP.",
)

TCP_SOCKET_ACTION: Final = Struct(
    "io.k8s.api.core.v1.TCPSocketAction",
    {
        "port": zero(INT_OR_STRING, "Number or name.", required=True),
        "host": omit(STRING, "Defaults to the pod."),
    },
    "Opens a connection.",
)

GRPC_ACTION: Final = Struct(
    "io.k8s.api.core.v1.GRPCAction",
    {
        "port": zero(INT32, required=True),
        "service": null(STRING, "What health is asked of.", default=""),
    },
    "Asks by the health protocol of gRPC.",
)

SLEEP_ACTION: Final = Struct(
    "io.k8s.api.core.v1.SleepAction",
    {"seconds": zero(INT64, required=True)},
    "Waits.",
)

PROBE: Final = Struct(
    "io.k8s.api.core.v1.Probe",
    {
        "exec": keep(EXEC_ACTION),
        "httpGet": keep(HTTP_GET_ACTION),
        "tcpSocket": keep(TCP_SOCKET_ACTION),
        "grpc": keep(GRPC_ACTION),
        "initialDelaySeconds": omit(INT32, "How long after the start of the container it begins."),
        "timeoutSeconds": omit(INT32, "Defaults to 1."),
        "periodSeconds": omit(INT32, "Defaults to 10."),
        "successThreshold": omit(INT32, "How many good answers in a row make it good. Defaults to 1."),
        "failureThreshold": omit(INT32, "How many bad answers in a row make it bad. Defaults to 3."),
        "terminationGracePeriodSeconds": keep(INT64, "How long the container may take to end when this fails. Absent: as the pod."),
    },
    "A question that is asked of a container again and again.",
)

LIFECYCLE_HANDLER: Final = Struct(
    "io.k8s.api.core.v1.LifecycleHandler",
    {
        "exec": keep(EXEC_ACTION),
        "httpGet": keep(HTTP_GET_ACTION),
        "tcpSocket": keep(TCP_SOCKET_ACTION, "Not supported."),
        "sleep": keep(SLEEP_ACTION),
    },
    "Something done once. One of these.",
)

LIFECYCLE: Final = Struct(
    "io.k8s.api.core.v1.Lifecycle",
    {
        "postStart": keep(LIFECYCLE_HANDLER, "Just after the container was created."),
        "preStop": keep(LIFECYCLE_HANDLER, "Just before the container is asked to end."),
        "stopSignal": keep(SIGNAL, "By which signal it is asked to end."),
    },
    "What is done when a container starts and ends.",
)

# Rights

CAPABILITIES: Final = Struct(
    "io.k8s.api.core.v1.Capabilities",
    {
        "add": omit(ListOf(named("v1.Capability"))),
        "drop": omit(ListOf(named("v1.Capability"))),
    },
    "Powers of root, more or fewer than usual.",
)

SE_LINUX_OPTIONS: Final = Struct(
    "io.k8s.api.core.v1.SELinuxOptions",
    {
        "user": omit(STRING),
        "role": omit(STRING),
        "type": omit(STRING),
        "level": omit(STRING),
    },
    "Labels for SELinux.",
)

WINDOWS_SECURITY_CONTEXT_OPTIONS: Final = Struct(
    "io.k8s.api.core.v1.WindowsSecurityContextOptions",
    {
        "gmsaCredentialSpecName": keep(STRING),
        "gmsaCredentialSpec": keep(STRING),
        "runAsUserName": keep(STRING),
        "hostProcess": keep(BOOL, "Whether it runs as a process of the node. One answer for all containers of a pod."),
    },
    "What counts on Windows only.",
)

SECCOMP_PROFILE: Final = Struct(
    "io.k8s.api.core.v1.SeccompProfile",
    {
        "type": zero(named("v1.SeccompProfileType", "Unconfined", "RuntimeDefault", "Localhost"), required=True),
        "localhostProfile": keep(STRING, "A file of the node, for Localhost."),
    },
    "Which system calls are allowed.",
)

APP_ARMOR_PROFILE: Final = Struct(
    "io.k8s.api.core.v1.AppArmorProfile",
    {
        "type": zero(named("v1.AppArmorProfileType", "Unconfined", "RuntimeDefault", "Localhost"), required=True),
        "localhostProfile": keep(STRING, "A profile loaded on the node, for Localhost."),
    },
    "What AppArmor allows.",
)

SECURITY_CONTEXT: Final = Struct(
    "io.k8s.api.core.v1.SecurityContext",
    {
        "capabilities": keep(CAPABILITIES),
        "privileged": keep(BOOL, "Whether root in here is as good as root of the node."),
        "seLinuxOptions": keep(SE_LINUX_OPTIONS),
        "windowsOptions": keep(WINDOWS_SECURITY_CONTEXT_OPTIONS),
        "runAsUser": keep(INT64, "Absent: as the image says."),
        "runAsGroup": keep(INT64),
        "runAsNonRoot": keep(BOOL, "Whether a container that would run as root is not started."),
        "readOnlyRootFilesystem": keep(BOOL),
        "allowPrivilegeEscalation": keep(BOOL, "Whether a process may win more rights than its parent."),
        "procMount": keep(named("v1.ProcMountType", "Default", "Unmasked"), "How much of /proc is hidden."),
        "seccompProfile": keep(SECCOMP_PROFILE),
        "appArmorProfile": keep(APP_ARMOR_PROFILE),
    },
    "What a container may do. Goes before what the pod says.",
)

# Containers

_FIELDS: Final = {
    "name": zero(STRING, "Unique in the pod. Cannot be updated.", required=True),
    "image": omit(STRING),
    "command": omit(STRINGS, "What is run. Absent: as the image says."),
    "args": omit(STRINGS, "Its arguments. Absent: as the image says."),
    "workingDir": omit(STRING, "Absent: as the image says."),
    "ports": omit(
        map_list(CONTAINER_PORT, "containerPort", "protocol"), "What it listens on.", patch_key="containerPort", patch_strategy="merge"
    ),
    "envFrom": omit(ListOf(ENV_FROM_SOURCE), "Variables from elsewhere, many at a time."),
    "env": omit(map_list(ENV_VAR, "name"), "Variables.", patch_key="name", patch_strategy="merge"),
    "resources": zero(RESOURCE_REQUIREMENTS, "How much of what it needs."),
    "resizePolicy": omit(ListOf(CONTAINER_RESIZE_POLICY)),
    "restartPolicy": keep(
        named("v1.ContainerRestartPolicy"), "Where it differs from the pod's. Always, on an init container: it goes on beside the others."
    ),
    "restartPolicyRules": omit(ListOf(CONTAINER_RESTART_RULE), "The first that applies goes before restartPolicy."),
    "volumeMounts": omit(map_list(VOLUME_MOUNT, "mountPath"), "Volumes as files.", patch_key="mountPath", patch_strategy="merge"),
    "volumeDevices": omit(map_list(VOLUME_DEVICE, "devicePath"), "Volumes as devices.", patch_key="devicePath", patch_strategy="merge"),
    "livenessProbe": keep(PROBE, "If it fails, the container is started again."),
    "readinessProbe": keep(PROBE, "While it fails, no service leads here."),
    "startupProbe": keep(PROBE, "Until it succeeds, the others wait."),
    "lifecycle": keep(LIFECYCLE),
    "terminationMessagePath": omit(STRING, "Where the container leaves its last words."),
    "terminationMessagePolicy": omit(
        named("v1.TerminationMessagePolicy", "File", "FallbackToLogsOnError"), "Whether the log will do instead of last words."
    ),
    "imagePullPolicy": omit(
        named("v1.PullPolicy", "Always", "Never", "IfNotPresent"), "Defaults to Always for the tag latest, else to IfNotPresent."
    ),
    "securityContext": keep(SECURITY_CONTEXT),
    "stdin": omit(BOOL, "Whether its input is kept open."),
    "stdinOnce": omit(BOOL, "Whether its input ends with the first who attaches to it."),
    "tty": omit(BOOL, "Whether it gets a terminal. Needs stdin."),
}

CONTAINER: Final = Struct("io.k8s.api.core.v1.Container", _FIELDS, "One of the containers of a pod.")

EPHEMERAL_CONTAINER: Final = Struct(
    "io.k8s.api.core.v1.EphemeralContainer",
    _FIELDS | {"targetContainerName": omit(STRING, "The container whose processes it sees.")},
    "A container that somebody adds to a running pod to look into it. Takes part in no promise of the pod.",
)
