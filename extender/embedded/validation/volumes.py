"""The volumes of a pod: names, exactly one source each, what the common sources need.

Upstream: pkg/apis/core/validation/validation.go, ValidateVolumes, validateVolumeSource (v1.36.2).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from extender.embedded.resources import Object
from extender.embedded.validation.names import config_key_errors, dns_label
from extender.embedded.validation.persistent_volumes import claim_spec
from extender.golang.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from extender.objects.quantity import quantity_of

_MAX_MODE: Final = 0o777
_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATHS: Final = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")


def volumes(path: str, values: Sequence[Object]) -> tuple[dict[str, Object], list[FieldError]]:
    """The volumes that are in order, by name, and what is wrong with the others."""
    errors: list[FieldError] = []
    known: dict[str, Object] = {}
    for place, volume in enumerate(values):
        here, name = f"{path}[{place}]", volume.get("name", "")
        wrong = _source(here, volume)
        wrong += dns_label(f"{here}.name", name) if name else [required(f"{here}.name")]
        if name in known:
            wrong.append(duplicate(f"{here}.name", name))
        if not wrong:
            known[name] = volume
        errors += wrong
    return known, errors


def _source(path: str, volume: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    given = [name for name, value in volume.items() if name != "name" and value is not None]
    if "emptyDir" in given:
        given = ["emptyDir", *(name for name in given if name != "emptyDir")]
    for place, name in enumerate(given):
        if place:
            errors.append(forbidden(f"{path}.{name}", "may not specify more than 1 volume type"))
        elif name in _RULES:
            errors += _RULES[name](f"{path}.{name}", volume[name])
    return errors or ([] if given else [required(path, "must specify a volume type")])


def _empty_dir(path: str, source: Object) -> list[FieldError]:
    if "sizeLimit" in source and quantity_of(source["sizeLimit"]).sign < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(path: str, source: Object) -> list[FieldError]:
    if not source.get("path"):
        return [required(f"{path}.path")]
    errors = _no_backsteps(f"{path}.path", source["path"])
    if source.get("type", "") not in _HOST_PATHS:
        errors.append(not_supported(f"{path}.type", source["type"], _HOST_PATHS))
    return errors


def _secret(path: str, source: Object) -> list[FieldError]:
    errors = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return errors + _files(path, source)


def _config_map(path: str, source: Object) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name")]
    return errors + _files(path, source)


def _files(path: str, source: Object) -> list[FieldError]:
    errors = _mode(f"{path}.defaultMode", source.get("defaultMode"))
    for place, item in enumerate(source.get("items") or ()):
        here = f"{path}.items[{place}]"
        key = item.get("key", "")
        errors += [invalid(f"{here}.key", key, error) for error in config_key_errors(key)] if key else [required(f"{here}.key")]
        errors += _no_backsteps(f"{here}.path", item["path"]) if item.get("path") else [required(f"{here}.path")]
        errors += _mode(f"{here}.mode", item.get("mode"))
    return errors


def _mode(path: str, mode: int | None) -> list[FieldError]:
    return [] if mode is None or 0 <= mode <= _MAX_MODE else [invalid(path, mode, _MODE)]


def _persistent_volume_claim(path: str, source: Object) -> list[FieldError]:
    return [] if source.get("claimName") else [required(f"{path}.claimName")]


def _ephemeral(path: str, source: Object) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_spec(f"{path}.volumeClaimTemplate.spec", template.get("spec") or {})


def _csi(path: str, source: Object) -> list[FieldError]:
    return [] if source.get("driver") else [required(f"{path}.driver")]


def _no_backsteps(path: str, value: str) -> list[FieldError]:
    return [invalid(path, value, "must not contain '..'")] if ".." in value.split("/") else []


_RULES: Final[Mapping[str, Callable[[str, Object], list[FieldError]]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "configMap": _config_map,
    "persistentVolumeClaim": _persistent_volume_claim,
    "ephemeral": _ephemeral,
    "csi": _csi,
}
