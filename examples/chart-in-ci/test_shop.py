"""The chart finds room in the cluster, evicts nobody, and is spread over the zones."""

import pytest

from reprieve import Chart

pytestmark = pytest.mark.reprieve_chart("shop.yaml", namespace="shop")


def test_every_pod_finds_room(reprieve_chart: Chart) -> None:
    assert reprieve_chart.will_fit()


def test_nobody_is_evicted(reprieve_chart: Chart) -> None:
    assert reprieve_chart.evicts_nobody()


def test_the_shop_is_spread_over_the_zones(reprieve_chart: Chart) -> None:
    assert reprieve_chart.spreads_over("topology.kubernetes.io/zone", min_domains=3, max_skew=1)
