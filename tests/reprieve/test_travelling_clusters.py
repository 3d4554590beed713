"""A cluster is the same wherever it travels to: in a pickle, in a file of its own form, and as a copy."""

import copy
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import cloudpickle  # type: ignore[import-untyped]
import pytest
from typer.testing import CliRunner

from api.cli import app
from extender.testing import random_cluster
from extender.values.objects.kinds import NODES, PODS
from reprieve import Cluster, ReprieveError
from tests.api.test_asking_with_few_rights import ANN, OBJECTS, role
from tests.api.test_claims_of_templates import CLUSTER
from tests.extender.answers.test_trial import objects_of
from tests.kit import objects
from tests.kit.api_with_roles import serving_with_roles
from tests.kit.objects import pod_group
from tests.kit.random_storage import random_cluster_with_volumes
from tests.kit.tables import cases
from tests.reprieve.lab.recordings.recorded_cluster import record, zoned
from tests.reprieve.test_library import as_mapping, node, nodes_of, pod, state_of

Travels = Callable[[Cluster, Path], Cluster]


def through_a_file(cluster: Cluster, folder: Path) -> Cluster:
    cluster.save(folder / "cluster.reprieve")
    return Cluster.load(folder / "cluster.reprieve")


@pytest.fixture(
    params=[
        lambda cluster, _: pickle.loads(pickle.dumps(cluster)),
        lambda cluster, _: cloudpickle.loads(cloudpickle.dumps(cluster)),
        lambda cluster, _: copy.deepcopy(cluster),
        through_a_file,
    ],
    ids=["pickle", "cloudpickle", "deepcopy", "file"],
)
def travels(request: pytest.FixtureRequest) -> Travels:
    return cast("Travels", request.param)


@pytest.mark.parametrize("seed", range(5))
def test_what_arrives_is_what_was_sent(travels: Travels, tmp_path: Path, seed: int) -> None:
    """In what is seen, and in what is decided from then on."""
    chance = random.Random(seed)
    drawn = (random_cluster, random_cluster_with_volumes)[seed % 2](chance)
    cluster = Cluster.load(map(as_mapping, objects_of(drawn, chance)))

    arrived = travels(cluster, tmp_path)

    with cluster.trial() as original, arrived.trial() as copy:
        assert copy.objects() == original.objects()
        assert state_of(copy) == state_of(original)
        assert copy.schedule() == original.schedule()
        waiting = [key for key, on in original.pods.items() if not on]
        assert list(map(copy.preempt, waiting)) == list(map(original.preempt, waiting))


def test_templates_of_claims_travel(travels: Travels, tmp_path: Path) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    train = objects.pod("train", container={"resources": {"claims": [{"name": "gpu"}]}}, resourceClaims=claims)

    with travels(Cluster.load(CLUSTER), tmp_path).trial() as trial:
        assert nodes_of(trial.schedule(train)) == {"default/train": "n1"}


def test_notes_and_the_configuration_of_a_recording_travel(travels: Travels, tmp_path: Path) -> None:
    async def tell(_: object) -> None: ...

    file = record(tmp_path / "recording", tell, zoned("n", "zone-a"))
    custom = {"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g"}}
    noted = Cluster.load([node("n"), custom])

    arrived = travels(Cluster.load(file), tmp_path)

    assert arrived._questions.configuration == Cluster.load(file)._questions.configuration
    assert travels(noted, tmp_path).notes == noted.notes != ()


def test_feature_gates_travel(travels: Travels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it arrives, groups are placed as a whole, which there would not be on by itself."""
    monkeypatch.setenv("REPRIEVE_FEATURE_GATES", "GenericWorkload=true,GangScheduling=true")
    members = [pod(f"m{number}", "2", on="", schedulingGroup={"podGroupName": "g"}) for number in range(3)]
    cluster = Cluster.load([node("n"), pod_group("g", min_count=3), *members])
    monkeypatch.delenv("REPRIEVE_FEATURE_GATES")

    with travels(cluster, tmp_path).trial() as trial:
        assert [placement.node for placement in trial.schedule()] == ["", "", ""]


def test_what_could_not_be_listed_is_not_known_where_the_cluster_arrives(travels: Travels, tmp_path: Path) -> None:
    with serving_with_roles(OBJECTS, {ANN: role(NODES, PODS)}) as api:
        cluster = Cluster.connect(api.kubeconfig(ANN, tmp_path))

    arrived = travels(cluster, tmp_path)

    assert arrived.notes == cluster.notes != ()
    with cluster.trial() as original, arrived.trial() as copy:
        assert copy.schedule("dev/volumes") == original.schedule("dev/volumes")
        assert "not known" in copy.schedule("dev/volumes")[0].message


def test_a_copy_leaves_its_original() -> None:
    cluster = Cluster.load([node("a"), pod("one", on="a")])

    changed = copy.deepcopy(cluster).updated([pod("two", on="a")])

    with cluster.trial() as trial, changed.trial() as other:
        assert (len(trial.pods), len(other.pods)) == (1, 2)


def test_commands_read_a_file_of_the_own_form(tmp_path: Path) -> None:
    Cluster.load([node("a", "1"), pod("large", "9")]).save(file := tmp_path / "cluster.reprieve")

    result = CliRunner().invoke(app, ["why", "large", "--dump", str(file)], catch_exceptions=False)

    assert "Insufficient cpu" in result.stdout


def saved(path: Path) -> dict[str, Any]:
    Cluster.load([node("a"), pod("one", on="a")]).save(path)
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


@cases(
    "changes, words",
    ("newer", {"reprieve": 2}, "a cluster in form 2, and this version of Reprieve reads form 1"),
    ("older", {"reprieve": 0}, "a cluster in form 0"),
    ("no form", {"reprieve": "new"}, "not a whole cluster"),
    ("wrong pods", {"pods": [["one"]]}, "not a whole cluster"),
    ("like no other", {"pods": [[7, "one", "u", "", "a", None, None, []]]}, "not a whole cluster"),
    ("no configuration", {"configuration": {"kind": "Pod"}}, "not a whole cluster"),
    ("an unknown kind", {"gaps": [["dragons", "", []]]}, "not a whole cluster"),
)
def test_a_file_of_another_form_says_so_in_one_line(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    file = tmp_path / "cluster.reprieve"
    content = saved(file)
    file.write_text(json.dumps({**content, **changes}, separators=(",", ":")))

    with pytest.raises(ReprieveError) as raised:
        Cluster.load(file)

    assert words in str(raised.value)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_of_the_first_form_is_read() -> None:
    """As it was written once: a form that cannot be read any more has another number."""
    cluster = Cluster.load(Path(__file__).parent / "data" / "form-1.reprieve")

    with cluster.trial() as trial:
        assert trial.pods == {"default/large": "", "default/one": "a", "default/two": "a"}
        assert trial.nodes().names == ["n1", "n2", "a"]
    assert "Gateway" in cluster.notes[0]


def test_half_a_file_is_none(tmp_path: Path) -> None:
    file = tmp_path / "cluster.reprieve"
    saved(file)
    file.write_bytes(file.read_bytes()[:-20])

    with pytest.raises(ReprieveError, match="not a whole cluster"):
        Cluster.load(file)


def test_a_file_holds_data(tmp_path: Path) -> None:
    """Not a pickle: nothing in it is run."""
    assert next(iter(saved(tmp_path / "cluster.reprieve"))) == "reprieve"


def test_a_pickle_of_another_form_says_so_in_one_line() -> None:
    pickled = pickle.dumps(Cluster.load([node("a")])).replace(b'{"reprieve":1,', b'{"reprieve":9,')

    with pytest.raises(ReprieveError, match="what was pickled: a cluster in form 9"):
        pickle.loads(pickled)


@pytest.mark.parametrize("travel", [pickle.dumps, cloudpickle.dumps, copy.deepcopy, copy.copy])
def test_a_trial_does_not_travel(travel: Callable[[object], object]) -> None:
    with Cluster.load([node("a")]).trial() as trial, pytest.raises(ReprieveError, match="send its Cluster"):
        travel(trial)
