"""The search for devices against a brute-force search, on small random cases."""

from itertools import combinations

from hypothesis import given, settings, strategies as st

from tests.extender.engine.plugins.device_allocations import allocated
from tests.kit.devices import exactly, make_claim, make_device, make_slice, selecting

NUMA = "gpu.example.com/numa"
SIZES = st.sampled_from([1, 2, 3])

devices = st.lists(st.tuples(SIZES, st.sampled_from([0, 1])), max_size=6)
"""(size, NUMA node) of each device."""
requests = st.lists(st.tuples(st.sampled_from([1, 2]), SIZES), min_size=1, max_size=3)
"""(how many devices, of at least which size) of each request."""


def can_be_had(sizes: list[tuple[int, int]], demands: list[tuple[int, int]], on_one_side: bool) -> bool:
    """Whether there is any way at all to give every request its devices."""

    def serve(place: int, free: frozenset[int], sides: frozenset[int]) -> bool:
        if on_one_side and len(sides) > 1:
            return False
        if place == len(demands):
            return True
        count, size = demands[place]
        fitting = [one for one in sorted(free) if sizes[one][0] >= size]
        return any(
            serve(place + 1, free - set(chosen), sides | {sizes[one][1] for one in chosen})
            for chosen in combinations(fitting, count)
        )

    return serve(0, frozenset(range(len(sizes))), frozenset())


@settings(deadline=None)
@given(sizes=devices, demands=requests, on_one_side=st.booleans(), in_one_claim=st.booleans())
def test_devices_are_found_if_there_are_any(
    sizes: list[tuple[int, int]], demands: list[tuple[int, int]], on_one_side: bool, in_one_claim: bool
) -> None:
    """The search finds an allocation exactly if there is one; what it finds is enough, fits, and is given once."""
    offered = make_slice(
        *(make_device(f"d{place}", {"size": size, "numa": numa}) for place, (size, numa) in enumerate(sizes))
    )
    manifests = [
        exactly(count, f"r{place}", **selecting(f'device.attributes["gpu.example.com"].size >= {size}'))
        for place, (count, size) in enumerate(demands)
    ]
    constraints = [{"matchAttribute": NUMA}] if on_one_side and in_one_claim else []
    groups = [manifests] if in_one_claim else [[one] for one in manifests]
    claims = [make_claim(f"c{place}", *group, constraints=constraints) for place, group in enumerate(groups)]

    devices_by_claim = allocated(*claims, slices=[offered])

    assert (devices_by_claim is not None) == can_be_had(sizes, demands, bool(constraints))
    if devices_by_claim is not None:
        pairs = [result.removeprefix("r").split("=d") for claim in devices_by_claim for result in claim]
        assignments = [(int(request), int(device)) for request, device in pairs]
        assert len({device for _, device in assignments}) == len(assignments) == sum(count for count, _ in demands)
        assert all(sizes[device][0] >= demands[request][1] for request, device in assignments)
        assert not constraints or len({sizes[device][1] for _, device in assignments}) == 1
