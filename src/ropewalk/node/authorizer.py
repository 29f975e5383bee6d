"""Whether what clients may do is decided by rules, and who is above them: from the node's own configuration alone."""

from ropewalk.metadata.settings.rights import ALLOW_UNRULED, AUTHORIZER, STANDARD_AUTHORIZER, SUPER_USERS
from ropewalk.node.config import Config
from ropewalk.security.access import Policy, policy_from


def policy_of(config: Config) -> Policy | None:
    """None where nothing is decided. Raises `InvalidSetting` for what does not fit together."""
    if config.broker_overrides.get(AUTHORIZER) != STANDARD_AUTHORIZER:
        return None
    return policy_from(config[SUPER_USERS], config[ALLOW_UNRULED])
