"""Which of a node's settings the cluster has otherwise, in words: for `ropewalk doctor`, which asks every node."""

from ropewalk.metadata.settings.effective import SettingsView


def differing_settings(view: SettingsView) -> tuple[str, ...]:
    return tuple(
        f"{name} is {here} in this node's configuration and {cluster} in the cluster: the cluster's value counts; "
        f"make them equal, or change the cluster's with `ropewalk cluster config set {name}=…`"
        for name, here, cluster in view.ignored()
    )
