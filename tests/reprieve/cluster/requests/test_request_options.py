"""The query of a request is read as an API server reads it."""

from typing import Any
from urllib.parse import parse_qs

from reprieve.cluster.requests.request_options import delete_options
from tests.kit.tables import cases


@cases(
    "query, options",
    ("nothing is asked for", "", {}),
    ("a grace period", "gracePeriodSeconds=30", {"gracePeriodSeconds": 30}),
    ("none is a wish, too", "gracePeriodSeconds=0", {"gracePeriodSeconds": 0}),
    ("dependents that stay", "orphanDependents=true", {"orphanDependents": True}),
    ("dependents that go, too", "orphanDependents=false", {"orphanDependents": False}),
    ("a policy", "propagationPolicy=Foreground", {"propagationPolicy": "Foreground"}),
    ("a rehearsal", "dryRun=All", {"dryRun": ["All"]}),
)
def test_a_deletion_has_the_options_that_its_query_names(query: str, options: dict[str, Any]) -> None:
    assert delete_options(parse_qs(query)) == options
