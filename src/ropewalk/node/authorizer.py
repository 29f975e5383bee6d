"""Whether what clients may do is decided by rules, and who is above them: from the node's own configuration alone.

What a reader could get wrong
    A door that does not ask for rights would be a way around them, so with such a door open the node does not start.
"""

from typing import Final

from ropewalk.base.errors import InvalidSetting
from ropewalk.metadata.settings.rights import ALLOW_UNRULED, AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from ropewalk.node.config import Config
from ropewalk.security.access import Policy, policy_from

_SQS: Final = "sqs.listen"


def policy_of(config: Config) -> Policy | None:
    """None where nothing is decided. Raises `InvalidSetting` for what does not fit together."""
    if config.broker_overrides.get(AUTHORIZER) != STANDARD_AUTHORIZER:
        return None
    if config[_SQS] != "none":
        raise InvalidSetting(
            f"{AUTHORIZER} is set and {_SQS} is {config[_SQS]}: rules do not decide yet what SQS clients may do; "
            f"set {_SQS} to none"
        )
    return policy_from(config[SUPER_USERS], config[ALLOW_UNRULED])
