"""Objects that remember all that their API server says of them."""

import json

from extender.values.objects.decoding import decode, replaced
from extender.values.objects.kinds import kind_of
from extender.values.objects.pod import Pod
from extender.values.objects.whole import in_full, whole
from reprieve.lab.recordings.redaction import Redaction

WRITTEN = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "p", "managedFields": [{"manager": "kubectl"}], "creationTimestamp": None},
    "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "b"}]}], "dnsPolicy": "Default"},
}
BODY = json.dumps(WRITTEN).encode()


def test_all_is_remembered_but_managed_fields_and_what_kind_it_is() -> None:
    """As kube-scheduler sends it, whose informers drop managedFields, and whose typed objects do not say their kind."""
    pod = whole(decode(Pod, BODY), BODY)

    metadata = {"name": "p", "creationTimestamp": None}
    assert json.loads(bytes(in_full(pod))) == {"metadata": metadata, "spec": WRITTEN["spec"]}


def test_a_copy_with_other_fields_does_not_remember_what_no_longer_holds() -> None:
    pod = whole(decode(Pod, BODY), BODY)

    moved = replaced(pod, spec=replaced(pod.spec, node_name="n"))

    containers = [{"name": "c", "resources": {}}]
    assert json.loads(bytes(in_full(moved)))["spec"] == {"nodeName": "n", "containers": containers}


def test_what_is_remembered_makes_no_object_differ() -> None:
    more = json.dumps(WRITTEN | {"status": {"hostIP": "10.0.0.1"}}).encode()

    assert whole(decode(Pod, BODY), BODY) == whole(decode(Pod, BODY), more)


def test_what_is_remembered_is_of_no_kind_of_its_own() -> None:
    text = b'{"metadata": {"name": "p", "namespace": "shop"}}'
    pod = whole(decode(Pod, text), text)

    assert kind_of(pod).name == "Pod"
    assert "shop" not in str(Redaction("names").of(pod))
