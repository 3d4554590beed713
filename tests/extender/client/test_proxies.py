import pytest

from extender.values.targets.target import CredentialsError, check_proxy, environment_proxy

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        ("https://k8s.example", {}, None),
        ("https://k8s.example", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://k8s.example", {"https_proxy": PROXY}, PROXY),
        ("https://k8s.example", {"HTTP_PROXY": PROXY}, None),
        ("http://k8s.example", {"HTTP_PROXY": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("https://k8s.example", {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, None),
    ],
)
def test_the_environment_names_a_proxy_by_scheme_and_none_for_this_machine(
    server: str, environ: dict[str, str], expected: str | None
):
    assert environment_proxy(server, environ) == expected


@pytest.mark.parametrize(
    ("server", "exceptions", "is_direct"),
    [
        ("https://k8s.example", "*", True),
        ("https://k8s.example", "k8s.example", True),
        ("https://K8S.example", "k8s.EXAMPLE", True),
        ("https://api.k8s.example", "k8s.example", True),
        ("https://apik8s.example", "k8s.example", False),
        ("https://k8s.example", ".k8s.example", False),
        ("https://api.k8s.example", ".k8s.example", True),
        ("https://api.k8s.example", "*.k8s.example", True),
        ("https://api.k8s.example", "other, api.k8s.example ,", True),
        ("https://k8s.example:6443", "k8s.example:6443", True),
        ("https://k8s.example:6443", "k8s.example:443", False),
        ("https://k8s.example", "k8s.example:443", True),
        ("https://10.96.0.1", "10.96.0.0/12", True),
        ("https://10.0.0.1", "10.96.0.0/12", False),
        ("https://k8s.example", "10.96.0.0/12", False),
        ("https://10.96.0.1", "10.96.0.1", True),
        ("https://10.96.0.1", "10.96.0.0/99", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://k8s.example", "", False),
    ],
)
def test_no_proxy_lists_the_hosts_that_are_reached_directly(server: str, exceptions: str, is_direct: bool):
    proxy = environment_proxy(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})

    assert (proxy is None) == is_direct


@pytest.mark.parametrize("url", ["socks5://me:canary@proxy", "http://:canary@", "http://me:canary@host:port", "canary"])
def test_a_proxy_that_can_not_be_used_is_refused_without_telling_its_password(url: str):
    with pytest.raises(CredentialsError, match="proxy-url") as caught:
        check_proxy(url)

    assert "canary" not in str(caught.value)
