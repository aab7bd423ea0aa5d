"""Puts a header on each record, as the settings say: {"name": "origin", "value": "east"}."""

from tidegate import Parts, Problem, Record, record_plugin

name = ""
value = b""


def init(settings: dict) -> None:
    global name, value
    for member in settings:
        if member not in ("name", "value"):
            raise Problem(f"/{member}", "there is no such setting; there are: name, value")
    for member in ("name", "value"):
        if not isinstance(settings.get(member), str):
            raise Problem(f"/{member}", "must be set, a string")
    if not settings["name"]:
        raise Problem("/name", "must not be empty")
    name = settings["name"]
    value = settings["value"].encode()


def edit(record: Record) -> None:
    record.set_header(name, value)


Lifecycle, Records = record_plugin(
    name="{{name}}",
    version="0.1.0",
    init=init,
    # It changes headers without looking at anything, so nothing crosses into the plugin.
    needs=Parts(0),
    edit=edit,
)
