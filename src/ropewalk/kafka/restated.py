"""What a client sends back as it was told, of settings that this node alone knows: no change, so nobody is asked for one.

Tools describe a broker, change one value and send all of them. Among these are settings that a node reads at its start, or that
are kept for the whole cluster. The controller refuses to change them for one broker and cannot know what that one has; the
broker itself can, and whoever changes a broker's settings asks the broker.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import structs

from ropewalk.base.ids import NodeId
from ropewalk.controller.settings import Operation
from ropewalk.kafka.config_resources import BROKER
from ropewalk.metadata.settings.broker import BROKER_SETTINGS
from ropewalk.metadata.settings.effective import SettingsView
from ropewalk.metadata.settings.setting import Change, Kind

Restate = Callable[[Any], Any]
"""Takes and gives AlterConfigs' or IncrementalAlterConfigs' request."""

_UNSET: Final = (None, "")


def without_restated(request: Any, view: SettingsView, node_id: NodeId) -> Any:
    """The request, without what says of this broker what is so already and could not be changed."""
    return structs.replace(
        request,
        resources=tuple(
            structs.replace(resource, configs=tuple(_changes(resource.configs, view)))
            if resource.resource_type == BROKER and resource.resource_name == str(node_id)
            else resource
            for resource in request.resources
        ),
    )


def _changes(configs: tuple[Any, ...], view: SettingsView) -> Iterator[Any]:
    for config in configs:
        if getattr(config, "config_operation", Operation.SET) != Operation.SET or not _is_restated(
            config, view
        ):
            yield config


def _is_restated(config: Any, view: SettingsView) -> bool:
    setting = BROKER_SETTINGS.get(config.name)
    if setting is None or not (setting.change is Change.READ_ONLY or setting.agreed):
        return False
    value = None if setting.kind is Kind.PASSWORD else view.of_broker(config.name).value
    return bool(config.value == value or (config.value in _UNSET and value in _UNSET))
