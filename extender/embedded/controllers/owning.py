"""Taking possession: owner references that controllers put on what is theirs, and take off what is not."""

from extender.embedded.controllers.seen import Seen
from extender.embedded.controllers.writes import Update
from extender.workloads.templates import controller_reference


def adopted(seen: Seen, owner: Seen) -> Update:
    """The object, belonging to this owner from now on."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") != owner.uid]
    content["metadata"]["ownerReferences"] = [*references, controller_reference(owner.content())]
    return Update(seen, content)


def released(seen: Seen, *uids: str) -> Update:
    """The object without the references to these owners."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") not in uids]
    if references:
        content["metadata"]["ownerReferences"] = references
    else:
        content["metadata"].pop("ownerReferences", None)
    return Update(seen, content)
