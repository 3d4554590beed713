"""A real control plane for tests: etcd and kube-apiserver, as envtest runs them. There are no controllers, no kubelets
and no scheduler.

    with ControlPlane.start(assets, folder) as plane:
        client = Client(plane.target())

`setup-envtest use 1.36.x` downloads the programs and prints their folder, which KUBEBUILDER_ASSETS then names.
"""

import secrets
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, final

import httpx

from extender.values.targets.target import Target, token
from extender.values.targets.tls import Pem, Tls, context
from tests.kit.certificates import Authority, CertificateFiles
from tests.kit.kubeconfigs import write_kubeconfig
from tests.kit.ports import free_port
from tests.kit.processes import Process

ADMIN: Final = "admin"

START_SECONDS: Final = 60.0
"""A kube-apiserver takes half a minute on a busy machine."""

STOP_SECONDS: Final = 20.0


@final
class ControlPlane:
    """etcd and kube-apiserver on ports of their own.

    Upstream: sigs.k8s.io/controller-runtime, pkg/internal/testing/controlplane, APIServer and Etcd.
    """

    def __init__(
        self,
        assets: Path,
        folder: Path,
        users: Mapping[str, Sequence[str]],
        start_seconds: float,
        without_admission: Sequence[str],
        flags: Sequence[str] = (),
    ) -> None:
        """Starts nothing; see `start`."""
        self._assets = assets
        self._folder = folder
        self._start_seconds = start_seconds
        self._flags = flags
        # Without controllers there are no service accounts, which this admission plugin requires.
        self._without_admission = ("ServiceAccount", *without_admission)
        self._tokens = {user: secrets.token_urlsafe(24) for user in users}
        self._token_file = folder / "tokens.csv"
        self._token_file.write_text(
            "".join(f'{self._tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in users.items())
        )
        self._authority = Authority(folder, "kubernetes")
        self._serving = self._authority.sign(
            "kube-apiserver", "IP:127.0.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"
        )
        self._service_accounts = self._authority.sign("service-accounts")
        etcd_port, peer_port, self._port = [free_port() for _ in range(3)]
        self._etcd_url = f"http://127.0.0.1:{etcd_port}"
        self._peer_url = f"http://127.0.0.1:{peer_port}"
        self._api_server: Process | None = None

    @staticmethod
    @contextmanager
    def start(
        assets: Path,
        folder: Path,
        *,
        users: Mapping[str, Sequence[str]] | None = None,
        start_seconds: float = START_SECONDS,
        without_admission: Sequence[str] = (),
        flags: Sequence[str] = (),
    ) -> Iterator["ControlPlane"]:
        """Yields a control plane that is ready, and stops it after the `with`.

        Arguments:
            assets: the folder with the programs.
            folder: an empty folder for certificates, etcd's data and the logs.
            users: further users and their groups; `admin` may do everything.
            without_admission: admission plugins to disable.
            flags: further flags of the kube-apiserver.

        Raises:
            ProcessError: a program is missing, ends, or does not become ready.
        """
        plane = ControlPlane(
            assets, folder, {ADMIN: ("system:masters",), **(users or {})}, start_seconds, without_admission, flags
        )
        with ExitStack() as stack:
            stack.enter_context(plane._running_etcd())
            stack.callback(plane.stop_api_server)
            plane.start_api_server()
            yield plane

    def target(self, user: str = ADMIN) -> Target:
        return Target(
            self.url, tls=Tls(ca=Pem(file=self._authority.certificate)), credentials=token(self._tokens[user])
        )

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """Writes a kubeconfig of this user into the folder, for programs that read one."""
        cluster = {"server": self.url, "certificate-authority": str(self._authority.certificate)}
        return write_kubeconfig(self._folder / f"{user}.kubeconfig", cluster, user, token=self._tokens[user])

    @property
    def url(self) -> str:
        """The URL of the API server, which stays the same after a restart."""
        return f"https://127.0.0.1:{self._port}"

    def start_api_server(self) -> None:
        """Starts the API server, and returns when it is ready."""
        process = Process(
            [self._assets / "kube-apiserver", *self._api_server_flags(self._serving)],
            self._folder / "kube-apiserver.log",
        )
        self._api_server = process
        with httpx.Client(
            verify=context(self.target().tls.read()),
            trust_env=False,
            headers={"Authorization": f"Bearer {self._tokens[ADMIN]}"},
        ) as http:
            process.wait_until(lambda: _is_ok(http, f"{self.url}/readyz"), self._start_seconds)

    def stop_api_server(self) -> None:
        """Stops the API server, if it runs. Its connections end; its data stay."""
        if self._api_server is not None:
            self._api_server.stop(STOP_SECONDS)
            self._api_server = None

    def kill_api_server(self) -> None:
        if self._api_server is not None:
            self._api_server.kill()
            self._api_server = None

    def signal_api_server(self, number: signal.Signals) -> None:
        if self._api_server is not None:
            self._api_server.send(number)

    @contextmanager
    def _running_etcd(self) -> Iterator[None]:
        flags = [
            f"--advertise-client-urls={self._etcd_url}",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--listen-peer-urls={self._peer_url}",
            "--unsafe-no-fsync=true",
        ]
        process = Process([self._assets / "etcd", *flags], self._folder / "etcd.log")
        try:
            with httpx.Client(trust_env=False) as http:
                process.wait_until(lambda: _is_ok(http, f"{self._etcd_url}/health"), self._start_seconds)
            yield
        finally:
            process.stop(STOP_SECONDS)

    def _api_server_flags(self, serving: CertificateFiles) -> list[str]:
        return [
            # Without these flags it looks for an address that other machines can reach, and there may be none.
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--bind-address=127.0.0.1",
            f"--cert-dir={self._folder}",
            f"--disable-admission-plugins={','.join(self._without_admission)}",
            f"--etcd-servers={self._etcd_url}",
            f"--secure-port={self._port}",
            f"--service-account-issuer={self.url}/",
            f"--service-account-key-file={self._service_accounts.certificate}",
            f"--service-account-signing-key-file={self._service_accounts.key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--token-auth-file={self._token_file}",
            *self._flags,
        ]


def _is_ok(http: httpx.Client, url: str) -> bool:
    try:
        return http.get(url, timeout=2).status_code == 200
    except httpx.TransportError:
        return False
