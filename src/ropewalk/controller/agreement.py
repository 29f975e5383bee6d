"""Settings that all nodes must agree on: which of them a controller that takes over has yet to settle.

The first controller settles all, by its own configuration, when it creates the cluster. One that finds some of them unsettled (the
metadata was written before they were agreed on) settles those. Nobody settles one again: from then on a value is changed at run time,
for all brokers (ADR 0013).

Behaviour worth knowing
    A node that is alone is its whole cluster, so its configuration counts each time it starts.
"""

from collections.abc import Mapping

from ropewalk.metadata.image import Image
from ropewalk.metadata.settings.broker import AGREED_SETTINGS


def decide_agreement(
    image: Image, *, configuration: Mapping[str, str], is_alone: bool
) -> dict[str, str | None]:
    """For the controller's first record: what its configuration says of each, None where the default is meant."""
    settled = image.agreed_settings
    return {
        name: configuration.get(name)
        for name in sorted(AGREED_SETTINGS)
        if name not in settled or (is_alone and settled[name] != configuration.get(name))
    }
