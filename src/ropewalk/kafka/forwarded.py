"""Requests that only the controller can carry out, at a node that is not: they are taken there, and the answer is brought back.

Behaviour worth knowing
    The client's next request is kept back meanwhile, as it would be if the change were made here.
    Its quotas are charged here: the controller says how much was changed.
    Where there is no controller every item is refused with NOT_CONTROLLER, which clients try again; where nobody knows whether the change
    was made, with REQUEST_TIMED_OUT.
    `validate_only` is taken there too: what would be decided is the controller's to say.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from ropewalk.base.errors import ControllerUnavailable, RopewalkError, Throttled
from ropewalk.broker.peers.calls.controller_call import ControllerCall
from ropewalk.broker.peers.calls.forward import Forwarded, forward
from ropewalk.kafka.caller import Caller
from ropewalk.kafka.errors import code_for
from ropewalk.kafka.handlers import create_partitions, create_topics, delete_topics
from ropewalk.kafka.refusals import REFUSALS
from ropewalk.kafka.restated import Restate
from ropewalk.kafka.served import ServedApi
from ropewalk.wire.messages.alter_configs import API as ALTER_CONFIGS
from ropewalk.wire.messages.create_partitions import API as CREATE_PARTITIONS
from ropewalk.wire.messages.create_topics import API as CREATE_TOPICS
from ropewalk.wire.messages.delete_topics import API as DELETE_TOPICS
from ropewalk.wire.messages.incremental_alter_configs import API as INCREMENTAL_ALTER_CONFIGS
from ropewalk.wire.types import Message

R = TypeVar("R")

FORWARDED: Final = frozenset(REFUSALS)

_RESTATED: Final = frozenset({ALTER_CONFIGS.key, INCREMENTAL_ALTER_CONFIGS.key})

_STRICT_SINCE: Final = {
    CREATE_TOPICS.key: create_topics.STRICT_SINCE,
    DELETE_TOPICS.key: delete_topics.STRICT_SINCE,
    CREATE_PARTITIONS.key: create_partitions.STRICT_SINCE,
}
"""From which version on a client that changes the cluster too often is refused."""


class Forwarding(Protocol):
    def is_needed(self) -> bool: ...

    async def forward(self, call: ControllerCall[Forwarded[R]]) -> Forwarded[R]: ...


def forwarding(
    served: Mapping[int, ServedApi], forwarding: Forwarding, restate: Restate
) -> dict[int, ServedApi]:
    """The table of a node that may have to ask another: as `served`, but for what is forwarded when need be.

    `restate` leaves out of a change of settings what only this node can know to be none.
    """
    return {
        key: ServedApi(
            api.api,
            api.version_min,
            api.version_max,
            partial(_handle, api, forwarding, restate if key in _RESTATED else None),
            api.weigh,
            api.tally,
        )
        if key in FORWARDED
        else api
        for key, api in served.items()
    }


async def _handle(
    served: ServedApi, forwarding: Forwarding, restate: Restate | None, request: Any, caller: Caller
) -> Message | None:
    if not forwarding.is_needed():
        return await served.handle(request, caller)
    api = served.api
    if restate is not None:
        request = restate(request)
    sender = caller.sender(throttled=_throttled(api.key, caller))
    try:
        with caller.hold():
            outcome = await forwarding.forward(forward(api, caller.version, request, sender))
    except ControllerUnavailable as error:
        if not forwarding.is_needed():  # it has become this node meanwhile
            return await served.handle(request, caller)
        return REFUSALS[api.key](request, code_for(error), str(error))
    except RopewalkError as error:
        return REFUSALS[api.key](request, code_for(error), str(error))
    if outcome.mutation_count:
        caller.charge_mutations(outcome.mutation_count)
    response: Message = outcome.response
    return response


def _throttled(api_key: int, caller: Caller) -> str | None:
    if caller.version < _STRICT_SINCE.get(api_key, caller.version + 1):
        return None
    try:
        caller.check_mutations()
    except Throttled as error:
        return str(error)
    return None
