import pytest

from extender.client.paths import path


@pytest.mark.parametrize(
    ("api_path", "expected"),
    [
        (path("", "v1", "nodes"), "/api/v1/nodes"),
        (path("", "v1", "pods"), "/api/v1/pods"),
        (path("", "v1", "nodes", name="n1"), "/api/v1/nodes/n1"),
        (
            path("", "v1", "pods", namespace="default", name="web", subresource="binding"),
            "/api/v1/namespaces/default/pods/web/binding",
        ),
        (path("apps", "v1", "replicasets", namespace="shop"), "/apis/apps/v1/namespaces/shop/replicasets"),
        (path("", "v1", "namespaces", name="shop", subresource="finalize"), "/api/v1/namespaces/shop/finalize"),
        (
            path("rbac.authorization.k8s.io", "v1", "clusterroles", name="system:a b?"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%3F",
        ),
    ],
)
def test_objects_are_where_the_api_has_them(api_path: str, expected: str):
    assert api_path == expected


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2Fb"])
def test_no_name_leads_elsewhere(name: str):
    with pytest.raises(ValueError, match="path"):
        path("", "v1", "pods", namespace="default", name=name)


def test_a_subresource_is_one_of_an_object():
    with pytest.raises(ValueError, match="pods/binding"):
        path("", "v1", "pods", namespace="default", subresource="binding")
