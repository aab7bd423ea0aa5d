"""Puts a prefix before each topic's name: {"prefix": "copy."}; without settings, the source cluster and a dot."""

import json

from componentize_py_types import Err
from wit_world.exports import lifecycle

prefix = ""


class Lifecycle:
    def describe(self) -> lifecycle.About:
        return lifecycle.About("{{name}}", "0.1.0", None)

    def init(self, link: lifecycle.Link, config: str) -> None:
        """Raises what is wrong; a problem's place is a JSON pointer into the settings."""
        global prefix
        settings = json.loads(config)
        for member in settings:
            if member != "prefix":
                raise Err([lifecycle.Problem(f"/{member}", "there is no such setting; there is: prefix")])
        prefix = settings.get("prefix", link.source_cluster + ".")
        if not isinstance(prefix, str) or not prefix:
            raise Err([lifecycle.Problem("/prefix", "must be a string, and not empty")])

    def self_test(self) -> None:
        pass


class TopicNaming:
    def to_target(self, topic: str) -> str:
        """`raise Err("why")` refuses the topic: it is not copied, and the operator reads why."""
        return prefix + topic

    def to_source(self, topic: str) -> str | None:
        """The inverse of to_target; None for names that it never makes. Loops are found by it."""
        return topic.removeprefix(prefix) if topic.startswith(prefix) and topic != prefix else None
