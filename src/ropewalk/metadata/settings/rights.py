"""Broker settings of who may do what, under Kafka's names. They are read when a node starts, and from its configuration alone."""

from collections.abc import Mapping
from typing import Final

from ropewalk.metadata.settings.setting import Change, Kind, Setting

AUTHORIZER: Final = "authorizer.class.name"
SUPER_USERS: Final = "super.users"
ALLOW_UNRULED: Final = "allow.everyone.if.no.acl.found"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""What Kafka's configurations call the only authorizer there is here."""

_CATALOGUE: Final = (
    Setting(
        AUTHORIZER,
        Kind.STRING,
        None,
        "Whether what clients may do is decided by rules. Unless set, everybody may do everything; with Kafka's StandardAuthorizer, what a rule "
        "allows. It must be the same on all nodes.",
        choices=(STANDARD_AUTHORIZER,),
        change=Change.READ_ONLY,
    ),
    Setting(
        SUPER_USERS,
        Kind.STRING,
        "",
        "Who may do everything, whatever rules say, as `User:alice;User:bob`: with semicolons between them.",
        change=Change.READ_ONLY,
    ),
    Setting(
        ALLOW_UNRULED,
        Kind.BOOLEAN,
        "false",
        "Whether everybody may do everything with a resource that no rule is about. One rule about somebody else closes it for all.",
        change=Change.READ_ONLY,
    ),
)

RIGHTS_SETTINGS: Final[Mapping[str, Setting]] = {setting.name: setting for setting in _CATALOGUE}
