"""Containers: what they are told to do, and how they do."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered

_CONTAINER: Final = numbered(
    name=1, image=2, imagePullPolicy=14, command=3, args=4, workingDir=5, env=7, envFrom=19,
    ports=6, resources=8, resizePolicy=23, volumeMounts=9, volumeDevices=21,
    livenessProbe=10, readinessProbe=11, startupProbe=22, lifecycle=12, restartPolicy=24, restartPolicyRules=25,
    securityContext=15, terminationMessagePath=13, terminationMessagePolicy=20, stdin=16, stdinOnce=17, tty=18,
)  # fmt: skip
_PROFILE: Final = numbered(type=1, localhostProfile=2)
REFERENCE: Final = numbered(name=1)
"""The object whose key or items are meant; JSON shows its name one level higher."""

CONTAINERS: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Container=_CONTAINER,
    EphemeralContainer=numbered({1: _CONTAINER}, targetContainerName=2),
    ContainerPort=numbered(name=1, containerPort=3, protocol=4, hostPort=2, hostIP=5),
    ResourceRequirements=numbered(requests=2, limits=1, claims=3),
    ResourceClaim=numbered(name=1, request=2),
    ContainerResizePolicy=numbered(resourceName=1, restartPolicy=2),
    ContainerRestartRule=numbered(action=1, exitCodes=2),
    ContainerRestartRuleOnExitCodes=numbered(operator=1, values=2),
    VolumeMount=numbered(name=1, mountPath=3, subPath=4, subPathExpr=6, readOnly=2, recursiveReadOnly=7, mountPropagation=5),
    VolumeDevice=numbered(name=1, devicePath=2),
    # Its environment.
    EnvVar=numbered(name=1, value=2, valueFrom=3),
    EnvVarSource=numbered(fieldRef=1, resourceFieldRef=2, configMapKeyRef=3, secretKeyRef=4, fileKeyRef=5),
    ObjectFieldSelector=numbered(apiVersion=1, fieldPath=2),
    ResourceFieldSelector=numbered(containerName=1, resource=2, divisor=3),
    ConfigMapKeySelector=numbered({1: REFERENCE}, key=2, optional=3),
    SecretKeySelector=numbered({1: REFERENCE}, key=2, optional=3),
    FileKeySelector=numbered(volumeName=1, path=2, key=3, optional=4),
    EnvFromSource=numbered(prefix=1, configMapRef=2, secretRef=3),
    ConfigMapEnvSource=numbered({1: REFERENCE}, optional=2),
    SecretEnvSource=numbered({1: REFERENCE}, optional=2),
    # How it is asked whether it is well, and told to stop.
    Probe=numbered(
        {1: numbered(exec=1, httpGet=2, tcpSocket=3, grpc=4)},
        initialDelaySeconds=2, periodSeconds=4, timeoutSeconds=3, successThreshold=5, failureThreshold=6, terminationGracePeriodSeconds=7,
    ),
    Lifecycle=numbered(postStart=1, preStop=2, stopSignal=3),
    LifecycleHandler=numbered(exec=1, httpGet=2, tcpSocket=3, sleep=4),
    ExecAction=numbered(command=1),
    HTTPGetAction=numbered(scheme=4, host=3, port=2, path=1, httpHeaders=5),
    HTTPHeader=numbered(name=1, value=2),
    TCPSocketAction=numbered(host=2, port=1),
    GRPCAction=numbered(port=1, service=2),
    SleepAction=numbered(seconds=1),
    # What it may do.
    SecurityContext=numbered(
        privileged=2, allowPrivilegeEscalation=7, capabilities=1, readOnlyRootFilesystem=6, procMount=9,
        runAsUser=4, runAsGroup=8, runAsNonRoot=5, seLinuxOptions=3, windowsOptions=10, seccompProfile=11, appArmorProfile=12,
    ),
    Capabilities=numbered(add=1, drop=2),
    SELinuxOptions=numbered(user=1, role=2, type=3, level=4),
    WindowsSecurityContextOptions=numbered(gmsaCredentialSpecName=1, gmsaCredentialSpec=2, runAsUserName=3, hostProcess=4),
    SeccompProfile=_PROFILE,
    AppArmorProfile=_PROFILE,
    # What is known of it.
    ContainerStatus=numbered(
        name=1, ready=4, started=9, restartCount=5, state=2, lastState=3, stopSignal=15, containerID=8, image=6, imageID=7,
        resources=11, allocatedResources=10, allocatedResourcesStatus=14, volumeMounts=12, user=13,
    ),
    ContainerState=numbered(waiting=1, running=2, terminated=3),
    ContainerStateWaiting=numbered(reason=1, message=2),
    ContainerStateRunning=numbered(startedAt=1),
    ContainerStateTerminated=numbered(exitCode=1, signal=2, reason=3, message=4, startedAt=5, finishedAt=6, containerID=7),
    VolumeMountStatus=numbered(name=1, mountPath=2, readOnly=3, recursiveReadOnly=4, volumeStatus=5),
    VolumeStatus=numbered(image=1),
    ImageVolumeStatus=numbered(imageRef=1),
    ContainerUser=numbered(linux=1),
    LinuxContainerUser=numbered(uid=1, gid=2, supplementalGroups=3),
    ResourceStatus=numbered(name=1, resources=2),
    ResourceHealth=numbered(resourceID=1, health=2, message=6),
)  # fmt: skip
