from typing import TypeVar

_T = TypeVar("_T")

def copied(value: _T) -> _T: ...
