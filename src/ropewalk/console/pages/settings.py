"""Settings of the cluster and its nodes, with where each comes from; those of one topic are on its own page."""

from typing import Final

from ropewalk.client.administration.admin import Admin, ResourceKind, Setting, SettingSource
from ropewalk.console.filled_in import number
from ropewalk.console.page import Asked, Done, Page, Shown, Wrong, link

_ORIGINS: Final = {
    SettingSource.BROKER: "this node, while it runs",
    SettingSource.CLUSTER: "all nodes",
    SettingSource.FILE: "its file or start",
    SettingSource.DEFAULT: "default",
}
_EVERYWHERE: Final = "all"


async def show(asked: Asked) -> Shown:
    brokers = (await Admin(asked.client).describe_cluster()).brokers
    known = [str(node_id) for node_id, _, _ in brokers]
    said = asked.query.get("node", "")
    if not known or (said and said not in known):
        raise Wrong(f"there is no node {said} that can be asked" if known else "no node can be asked")
    node = said or known[0]
    settings = await Admin(asked.client).describe_settings(
        ResourceKind.BROKER, node, with_documentation=True, with_inherited=True
    )
    words = asked.query.get("filter", "")
    found = [each for each in settings if _has(each, words)]
    chosen = asked.word("setting")
    values: dict[str, object] = {
        "node": node,
        "nodes": known,
        "words": words,
        "own": [each for each in found if not each.is_default],
        "others": [each for each in found if each.is_default],
        "origins": _ORIGINS,
        "changeable": [(each.name, each.name) for each in settings if not each.is_read_only],
        "places": [(_EVERYWHERE, "all nodes"), *((each, f"node {each} alone") for each in known)],
        "chosen": chosen,
        "current": next((each.value or "" for each in settings if each.name == chosen), ""),
        "said": {each: asked.form.text(each) for each in ("value", "place")},
    }
    return Shown("settings.html", values)


async def change(asked: Asked) -> Done:
    """Set one setting, or take it back to what it would be."""
    setting, place = asked.form.text("setting"), asked.form.text("place")
    if not setting:
        raise Wrong("choose a setting")
    resource = "" if place == _EVERYWHERE else str(number(place, "node"))
    is_reset = asked.form.text("how") == "reset"
    value = None if is_reset else asked.form.text("value")
    await Admin(asked.client).alter_settings(ResourceKind.BROKER, resource, {setting: value})
    where = "for all nodes" if resource == "" else f"for node {resource}"
    said = f"{setting} is not set {where} any more" if value is None else f"{setting} is {value} {where}"
    return Done(link("settings"), said)


def _has(setting: Setting, words: str) -> bool:
    text = f"{setting.name}\n{setting.value or ''}\n{setting.documentation or ''}".casefold()
    return all(word in text for word in words.casefold().split())


PAGE: Final = Page(
    name="settings", title="Settings", menu="Settings", key="s", show=show, actions={"change": change}
)
