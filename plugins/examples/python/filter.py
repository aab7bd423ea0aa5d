"""Lets only records of one region pass: those whose header "region" is what the settings say, {"region": "eu"} by
default. What has no such header stays."""

from tidegate import Parts, Problem, Record, record_plugin

region = b"eu"


def init(settings: dict) -> None:
    global region
    for member in settings:
        if member != "region":
            raise Problem(f"/{member}", "there is no such setting; there is: region")
    wanted = settings.get("region", "eu")
    if not isinstance(wanted, str):
        raise Problem("/region", "must be a string")
    region = wanted.encode()


def edit(record: Record) -> None:
    if dict(reversed(record.headers)).get(b"region") != region:
        record.drop()


Lifecycle, Records = record_plugin(
    name="region-only",
    version="0.1.0",
    init=init,
    needs=Parts.HEADERS,
    header_names=["region"],
    edit=edit,
)
