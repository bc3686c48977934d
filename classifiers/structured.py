"""Dictionaries of structured header fields (RFC 9651), such as `u=5, i`: enough of them to read `priority`.

The grammar is checked in full, since one malformed member makes the whole field void.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST_CHARS = 1024
"""Longer fields are not read: no honest one comes near, and reading stays cheap."""

_KEY = r"[a-z*][a-z0-9_.*-]*"
_BARE_ITEM = "|".join(
    (
        r"-?[0-9]{1,12}\.[0-9]{1,3}",  # decimal
        r"@?-?[0-9]{1,15}",  # integer, date
        r'"(?:[ !#-\[\]-~]|\\["\\])*"',  # string
        r'%"(?:[ !#$&-~]|%[0-9a-f]{2})*"',  # display string
        r"[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*",  # token
        r":[A-Za-z0-9+/=]*:",  # byte sequence
        r"\?[01]",  # boolean
    )
)
_PARAMETERS = rf"(?:; *{_KEY}(?:=(?:{_BARE_ITEM}))?)*+"
_ITEM = rf"(?:{_BARE_ITEM}){_PARAMETERS}"
_INNER_LIST = rf"\( *(?:{_ITEM}(?: +{_ITEM})*+)? *\){_PARAMETERS}"
_MEMBER = re.compile(rf"({_KEY})(?:=(?:({_BARE_ITEM}){_PARAMETERS}|({_INNER_LIST}))|{_PARAMETERS})")
_COMMA = re.compile(r"[ \t]*,[ \t]*")


def read_dictionary(text: str) -> Mapping[str, str] | None:
    """The members in their serialised form, parameters left out (`?1` where a member has no value).

    None: the field is malformed. Of a repeated member the last one counts.
    """
    text = text.strip(" ")
    if len(text) > LONGEST_CHARS:
        return None
    members: dict[str, str] = {}
    position = 0
    while position < len(text):
        member = _MEMBER.match(text, position)
        if member is None:
            return None
        key, item, inner_list = member.groups()
        members[key] = item or inner_list or "?1"
        position = member.end()
        if position < len(text):
            comma = _COMMA.match(text, position)
            if comma is None or comma.end() == len(text):
                return None
            position = comma.end()
    return members
