"""Steps and drafts (`base/state_machine.py`) as groups have them."""

from typing import TypeAlias

from ropewalk.base import state_machine
from ropewalk.groups.answers import Answer
from ropewalk.groups.errors import GroupError
from ropewalk.groups.events import Event

Reply: TypeAlias = state_machine.Reply[Answer | GroupError]
Step: TypeAlias = state_machine.Step[Event, Answer | GroupError]
Draft: TypeAlias = state_machine.Draft[Event, Answer | GroupError]
