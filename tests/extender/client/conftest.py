import pytest

from tests.extender.client.sockets import STAGES, Stage
from tests.kit.certificates import Authority, CertificateFiles


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest) -> Stage:
    """Tests on real sockets run on asyncio's own loop and on the one that the service uses: their transports differ."""
    return STAGES[request.param]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that a cluster trusts."""
    return Authority(tmp_path_factory.mktemp("pki"), "kubernetes")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("pki"), "stranger")


@pytest.fixture(scope="session")
def server_files(authority: Authority) -> CertificateFiles:
    """Certificate and key of an API server at 127.0.0.1, also known as kubernetes.default."""
    return authority.sign("apiserver", "IP:127.0.0.1", "DNS:kubernetes.default")
