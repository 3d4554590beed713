"""A cluster that is followed is as fresh as its watches, also after they were cut."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from extender.values.objects.kinds import NODES
from reprieve import Cluster, Follower, ReprieveError
from tests.api.test_asking_with_few_rights import ANN, OBJECTS, role
from tests.kit.api_with_roles import serving_with_roles
from tests.kit.faults.resets import ResettingProxy
from tests.kit.objects import state_file
from tests.kit.service import Service, kubeconfig_for, serving
from tests.kit.waiting import DEADLINE
from tests.reprieve.test_library import node, pod

PODS_PATH = "/api/v1/namespaces/default/pods"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """The API server with one pod on one node, and no scheduler."""
    file = tmp_path / "cluster.json"
    objects = [node("a"), pod("one", on="a")]
    state_file(file, *objects)
    with serving(state=file) as service:
        yield service


async def until(follower: Follower, holds: Callable[[dict[str, str]], object]) -> dict[str, str]:
    """Returns the pods of the first cluster of which this holds."""
    async with asyncio.timeout(DEADLINE):
        async for cluster in follower:
            with cluster.trial() as trial:
                if holds(pods := trial.pods):
                    return pods
    raise AssertionError("it is over")


def create(service: Service, name: str) -> None:
    service.client.post(PODS_PATH, json={**pod(name, on="a"), "metadata": {"name": name}}).raise_for_status()


def test_what_comes_and_goes_is_seen(service: Service, tmp_path: Path) -> None:
    async def follow() -> list[dict[str, str]]:
        async with Cluster.follow(kubeconfig_for(service.port, tmp_path), pause=0) as follower:
            first = await until(follower, len)
            create(service, "two")
            second = await until(follower, lambda pods: "default/two" in pods)
            service.client.delete(f"{PODS_PATH}/one", params={"gracePeriodSeconds": 0}).raise_for_status()
            return [first, second, await until(follower, lambda pods: "default/one" not in pods)]

    both = {"default/one": "a", "default/two": "a"}
    assert asyncio.run(follow()) == [{"default/one": "a"}, both, {"default/two": "a"}]


def test_watches_that_are_cut_come_back(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happened meanwhile is not missed; and until then the follower says what it does not know."""
    monkeypatch.setattr("reprieve.library.OUTDATED_AFTER", 0.0)

    async def follow(proxy: ResettingProxy) -> tuple[list[str], dict[str, str]]:
        async with Cluster.follow(kubeconfig_for(proxy.port, tmp_path), pause=0) as follower:
            assert not follower.outdated
            proxy.share = 1.0
            proxy.cut()
            create(service, "two")
            async with asyncio.timeout(DEADLINE):
                while not (outdated := [*follower.outdated]):  # noqa: ASYNC110 - nobody is told of what does not come
                    await asyncio.sleep(0.01)
            proxy.share = 0.0
            return outdated, await until(follower, lambda pods: "default/two" in pods)

    with ResettingProxy(service.port, Random(0)).running() as proxy:
        outdated, pods = asyncio.run(follow(proxy))

    assert pods == {"default/one": "a", "default/two": "a"}
    assert ": no news for " in outdated[0]


def test_a_cluster_stays_as_it_was_and_is_the_same_until_something_changes(service: Service, tmp_path: Path) -> None:
    async def follow() -> None:
        async with Cluster.follow(kubeconfig_for(service.port, tmp_path), pause=0) as follower:
            before = follower.cluster
            assert follower.cluster is before
            create(service, "two")
            await until(follower, lambda pods: "default/two" in pods)
            with before.trial() as trial:
                assert trial.pods == {"default/one": "a"}
                assert [placement.node for placement in trial.schedule(pod("three"))] == ["a"]
            assert follower.cluster is not before

    asyncio.run(follow())


def test_trials_have_the_feature_gates_that_the_cluster_is_followed_with(service: Service, tmp_path: Path) -> None:
    """With others, kinds would be missing that nobody has read."""
    groups = {"GenericWorkload": True, "GangScheduling": True}

    async def follow(gates: dict[str, bool] | None) -> None:
        async with Cluster.follow(kubeconfig_for(service.port, tmp_path), feature_gates=gates) as follower:
            for cluster in (follower.cluster, follower.cluster.updated([node("b")])):
                with cluster.trial(feature_gates=groups) as trial:
                    assert trial.schedule() == []

    asyncio.run(follow(groups))
    with pytest.raises(ReprieveError, match="was read without what GenericWorkload is about"):
        asyncio.run(follow(None))


def test_the_end_of_the_block_ends_who_iterates(service: Service, tmp_path: Path) -> None:
    async def count(follower: Follower) -> int:
        return len([cluster async for cluster in follower])

    async def follow() -> int:
        async with Cluster.follow(kubeconfig_for(service.port, tmp_path), pause=0) as follower:
            counting = asyncio.create_task(count(follower))
            await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE):
            return await counting

    assert asyncio.run(follow()) >= 1


def test_what_the_block_raises_is_raised_as_it_is(service: Service, tmp_path: Path) -> None:
    async def follow() -> None:
        async with Cluster.follow(kubeconfig_for(service.port, tmp_path)):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(follow())


def test_who_may_not_list_all_is_told_so(tmp_path: Path) -> None:
    async def follow(kubeconfig: Path) -> None:
        async with Cluster.follow(kubeconfig):
            pass

    rights = role(NODES, verbs=("get",))  # a watch would keep this server from ending
    with serving_with_roles(OBJECTS, {ANN: rights}) as api, pytest.raises(ReprieveError, match="cannot be listed"):
        asyncio.run(follow(api.kubeconfig(ANN, tmp_path)))


def test_a_server_that_is_away_is_told_in_one_line(tmp_path: Path) -> None:
    async def follow() -> None:
        async with Cluster.follow(tmp_path / "none"):
            pass

    with pytest.raises(ReprieveError, match="none"):
        asyncio.run(follow())


@pytest.mark.parametrize("pause", ["1", None, -1.0, float("nan"), True])
def test_a_pause_is_a_number_of_seconds(pause: Any, tmp_path: Path) -> None:
    async def follow() -> None:
        async with Cluster.follow(tmp_path / "none", pause=pause):
            pass

    with pytest.raises(ReprieveError, match="is no pause: give seconds"):
        asyncio.run(follow())
