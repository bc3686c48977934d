"""YAML text -> plain values, and where in the text each of them stands.

One document of mappings with text keys, lists and bare words (see `scalars`). Anchors, aliases and merge keys work.
Tags, duplicate keys, aliases that blow up and nesting without end are refused; so are variables that are not set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from router.settings.problems import Path, Problem, SettingsError
from router.settings.scalars import Substituted, VariableError, bare, mentions_variable, substitute

MOST_CHARACTERS: Final = 256 * 1024
MOST_VALUES: Final = 20_000
"""With aliases written out."""
DEEPEST: Final = 40

_BARE: Final = "bare"
"""Tag of a scalar without quotes."""
_TEXT: Final = "tag:yaml.org,2002:str"
_SEQUENCE: Final = "tag:yaml.org,2002:seq"
_MAPPING: Final = "tag:yaml.org,2002:map"

Place = tuple[int, int]
"""Line and column, counted from 1."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something wrong with one value."""

    path: Path
    place: Place
    message: str


@dataclass(slots=True)
class Document:
    """What a text says."""

    value: object = None
    """None stands where a value was left out."""
    places: dict[Path, Place] = field(default_factory=dict)
    """Of values; a block under a key is placed at the key."""
    key_places: dict[Path, Place] = field(default_factory=dict)
    flaws: list[Flaw] = field(default_factory=list)
    left_out: set[Path] = field(default_factory=set)
    """Paths of values that cannot be read; their flaw is in `flaws`."""
    substituted: set[str] = field(default_factory=set)
    """Values that came from the environment."""

    def place(self, path: Path, *, of_key: bool = False) -> Place:
        """Where a path stands, or the nearest thing above it that stands anywhere."""
        if of_key and path in self.key_places:
            return self.key_places[path]
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))


def read(text: str, source: str, env: Mapping[str, str]) -> Document:
    """Read one YAML document. Raises `SettingsError` where it is no YAML at all; other flaws are in the result."""
    text = text.removeprefix("\ufeff")
    if len(text) > MOST_CHARACTERS:
        raise _refused(source, (0, 0), f"expected at most {MOST_CHARACTERS // 1024} KiB of settings")
    root = _compose(text, source)
    document = Document()
    if root is not None:
        document.value = _Reader(document, env).value(root, (), _place(root.start_mark))
    return document


def _refused(source: str, place: Place, message: str) -> SettingsError:
    return SettingsError([Problem(source=source, line=place[0], column=place[1], message=message)])


def _compose(text: str, source: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
        message = f"a character that a settings file may not contain (U+{ord(text[error.position]):04X}); remove it"
        raise _refused(source, place, message) from None
    try:
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        in_brackets = mark is not None and text[mark.index - 1 : mark.index + 1] == "${"
        advice = 'inside brackets a variable needs quotes: "${NAME}"' if in_brackets else _advice(error)
        raise _refused(source, _place(mark) if mark is not None else (0, 0), advice) from None
    except (ValueError, OverflowError):  # PyYAML hands the digits of "\UFFFFFFFF" to chr()
        raise _refused(source, _place(loader.get_mark()), "an escape that stands for no character") from None
    finally:
        loader.dispose()


def _place(mark: yaml.error.Mark) -> Place:
    return mark.line + 1, mark.column + 1


class _Loader(yaml.SafeLoader):
    """PyYAML's reader, scanner, parser and composer; the meaning of bare words is left to `scalars`."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._count = 0
        self._sizes: dict[int, tuple[int, int]] = {}
        """Number of values and depth below a finished node, by its identity; aliases count each time."""

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: bool | tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode and isinstance(implicit, tuple):
            return _BARE if implicit[0] else _TEXT
        return _SEQUENCE if kind is yaml.SequenceNode else _MAPPING

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if self._depth >= DEEPEST:
            raise _Refusal(f"nested deeper than {DEEPEST} levels; settings need no more than six", event.start_mark)
        self._count += 1
        if self._count > MOST_VALUES:
            raise _Refusal(f"more than {MOST_VALUES} values; that is no settings file", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is not None and isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise _Refusal("an alias inside the very value that it repeats; write the value out", event.start_mark)
        elif node is not None:
            self._sizes[id(node)] = self._measured(node, event.start_mark)
        return node

    def _measured(self, node: yaml.Node, mark: Any) -> tuple[int, int]:
        below = [self._sizes[id(child)] for child in _children(node)]
        count = 1 + sum(count for count, _ in below)
        depth = 1 + max((depth for _, depth in below), default=0)
        if count > MOST_VALUES or depth > DEEPEST:
            raise _Refusal(f"more than {MOST_VALUES} values or {DEEPEST} levels, with aliases written out", mark)
        return count, depth


class _Refusal(yaml.MarkedYAMLError):
    """Our own reason to stop reading; its text is a message as it stands."""

    def __init__(self, message: str, mark: Any) -> None:
        super().__init__(problem=message, problem_mark=mark)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value


_ADVICE: Final[Mapping[str, str]] = {
    "found undefined alias": "an alias (*name) without its anchor (&name); put text that begins with * in quotes",
    "second occurrence": "an anchor (&name) that stands further up already; put text that begins with & in quotes",
    "but found another document": "a second document begins here; settings are one document, remove the ---",
    "found character '\\t'": "a tab; indent with spaces",
    "mapping values are not allowed": "a colon where no key can be; check the indentation, or put the text in quotes",
    "could not find expected ':'": "expected KEY: VALUE; check the indentation and the lines above",
    "found undefined tag handle": "a tag (!name); put text that begins with ! in quotes",
    "found character": "text cannot begin with this character; put it in quotes",
    "found unexpected end of stream": "the file ends inside quotes; close them",
    "found unknown escape character": "an unknown escape (\\) in double quotes; use single quotes or write \\\\",
    "expected <block end>": "this line does not fit those above; check the indentation, close quotes and brackets",
    "expected the node content": "a value is missing, or a bracket stands where none is open",
    "expected ',' or": "a list or mapping in brackets is not closed, or a comma is missing",
}


def _advice(error: yaml.MarkedYAMLError) -> str:
    """What to do about PyYAML's complaint. Its own words are kept only where they quote nothing of the file."""
    problem = error.problem or "not valid YAML"
    if isinstance(error, _Refusal):
        return problem
    advice = next((advice for start, advice in _ADVICE.items() if problem.startswith(start)), None)
    words = "" if "'" in problem or '"' in problem else f": {problem}"
    return advice or f"not valid YAML{words}; check quotes, brackets and indentation"


class _Reader:
    """Turns nodes into values and notes places and flaws on the way."""

    def __init__(self, document: Document, env: Mapping[str, str]) -> None:
        self._document = document
        self._env = env

    def value(self, node: yaml.Node, path: Path, place: Place) -> object:
        self._document.places[path] = place
        if isinstance(node, yaml.ScalarNode) and node.tag in (_BARE, _TEXT):
            return self._scalar(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return [self.value(item, (*path, i), _place(item.start_mark)) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return self._mapping(node, path)
        self._leave_out(path, place, "a tag (!name) changes nothing here; remove it, or put the text in quotes")
        return None

    def _flaw(self, path: Path, place: Place, message: str) -> None:
        self._document.flaws.append(Flaw(path, place, message))

    def _leave_out(self, path: Path, place: Place, message: str) -> None:
        self._document.left_out.add(path)
        self._flaw(path, place, message)

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> object:
        text: str = node.value
        place = self._document.places[path]
        if _half_a_character(text):
            self._leave_out(path, place, _HALF)
            return None
        if not mentions_variable(text):
            return bare(text) if node.tag == _BARE else text
        try:
            replaced = substitute(text, self._env)
        except VariableError as error:
            self._leave_out(path, place, str(error))
            return None
        self._document.substituted.add(replaced)
        return Substituted(replaced)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        for key_node, value_node, merged in self._pairs(node, path):
            key = self._key(key_node, path)
            if key is None or (merged and key in found):
                continue
            key_place, here = _place(key_node.start_mark), (*path, key)
            if key in found:
                first = self._document.key_places[here][0]
                self._flaw(here, key_place, f"written twice, first in line {first}; remove one of the two")
                continue
            self._document.key_places[here] = key_place
            block = isinstance(value_node, yaml.CollectionNode) and not value_node.flow_style
            found[key] = self.value(value_node, here, key_place if block else _place(value_node.start_mark))
        return found

    def _pairs(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[yaml.Node, yaml.Node, bool]]:
        """Own pairs, then those of `<<: *base` or `<<: [*first, *second]`, which are marked True; earlier ones win."""
        merges: list[yaml.Node] = []
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag == _BARE and key.value == "<<":
                merges.extend(value.value if isinstance(value, yaml.SequenceNode) else [value])
            else:
                yield key, value, False
        for base in merges:
            if isinstance(base, yaml.MappingNode):
                yield from ((key, value, True) for key, value, _ in self._pairs(base, path))
            else:
                self._flaw(path, _place(base.start_mark), "<< merges a mapping, or a list of mappings: <<: *anchor")

    def _key(self, node: yaml.Node, path: Path) -> str | None:
        place = _place(node.start_mark)
        if not isinstance(node, yaml.ScalarNode) or node.tag not in (_BARE, _TEXT):
            self._flaw(path, place, "a list, mapping or tag cannot be a key; write KEY: VALUE")
        elif node.tag == _BARE and not isinstance(bare(node.value), str):
            self._flaw(path, place, "a key is text; put a number, true, false or null in quotes")
        elif mentions_variable(node.value):
            self._flaw(path, place, "variables are replaced in values only; write the key itself")
        elif _half_a_character(node.value):
            self._flaw(path, place, _HALF)
        else:
            return str(node.value)
        return None


_HALF: Final = "an escape that stands for half a character; write the character itself"


def _half_a_character(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
