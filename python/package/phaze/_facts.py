"""Immutable objects over the facts of an answer."""

from __future__ import annotations

import copy
import json
from typing import Any, Dict, Iterator, List, Tuple, Type, TypeVar

from ._html import facts_html

T = TypeVar("T", bound="Facts")


class Facts:
    """Facts by name: what the JSON of an answer holds, as attributes that cannot be changed.

    Every key is an attribute; the subclasses document the ones that are used most.
    """

    __slots__ = ("_facts",)
    _facts: Dict[str, Any]

    def __init__(self, facts: Dict[str, Any]) -> None:
        object.__setattr__(self, "_facts", facts)

    def to_dict(self) -> Dict[str, Any]:
        """The facts as a dictionary of one's own."""
        return copy.deepcopy(self._facts)

    def to_json(self) -> str:
        """The facts as JSON."""
        return json.dumps(self._facts)

    def __getattr__(self, name: str) -> Any:
        # Only called where no property has the name.
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return seen(self._facts[name])
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no `{name}`; it has {', '.join(self._facts)}") from None

    def __dir__(self) -> List[str]:
        return sorted({*object.__dir__(self), *self._facts})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facts) and type(self) is type(other) and self._facts == other._facts

    def __hash__(self) -> int:
        return hash((type(self).__name__, json.dumps(self._facts, sort_keys=True)))

    def __reduce__(self) -> Tuple[Type[Any], Tuple[Any, ...]]:
        return type(self), (self._facts,)

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self._facts.items() if not isinstance(value, (dict, list)))
        return f"{type(self).__name__}({shown})"

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, self._facts.items())


def seen(value: Any) -> Any:
    """A value that can be looked at but not changed: objects for dictionaries, tuples for lists."""
    if isinstance(value, dict):
        return Facts(value)
    if isinstance(value, list):
        return tuple(seen(item) for item in value)
    return value


def many(kind: Type[T], items: List[Dict[str, Any]]) -> Tuple[T, ...]:
    """One object for each of some facts."""
    return tuple(kind(item) for item in items)


def walk(facts: Dict[str, Any], *path: str) -> Iterator[Any]:
    """The value at the end of a path, if there is one."""
    value: Any = facts
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return
        value = value[key]
    if value is not None:
        yield value
