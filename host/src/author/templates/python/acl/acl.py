"""Says what an access rule of the source becomes on the target: principals get a suffix, {"suffix": "-dr"}, and rules that
let write are left out, since nobody but the replicator writes there."""

import json

from componentize_py_types import Err
from wit_world.exports import acl_mapping, lifecycle

suffix = ""


class Lifecycle:
    def describe(self) -> lifecycle.About:
        return lifecycle.About("{{name}}", "0.1.0", None)

    def init(self, link: lifecycle.Link, config: str) -> None:
        """Raises what is wrong; a problem's place is a JSON pointer into the settings."""
        global suffix
        settings = json.loads(config)
        for member in settings:
            if member != "suffix":
                raise Err([lifecycle.Problem(f"/{member}", "there is no such setting; there is: suffix")])
        suffix = settings.get("suffix", "")
        if not isinstance(suffix, str):
            raise Err([lifecycle.Problem("/suffix", "must be a string")])

    def self_test(self) -> None:
        pass


def mapped(acl: acl_mapping.Acl) -> list[acl_mapping.Acl]:
    """Nothing, one rule or several. A rule that allows more than the source's is refused by the host."""
    if acl.operation == "WRITE":
        return []
    acl.principal += suffix
    return [acl]


class AclMapping:
    def map_acls(self, acls: list[acl_mapping.Acl]) -> list[list[acl_mapping.Acl]]:
        return [mapped(acl) for acl in acls]
