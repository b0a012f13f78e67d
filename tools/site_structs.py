"""An extension of Griffe: shows the fields of msgspec structs as the parameters of their class."""

from __future__ import annotations

from typing import Any

import griffe


class StructSignatures(griffe.Extension):
    """Gives each struct of the package an `__init__`, as Griffe itself does for dataclasses."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the structs of a package when all of it is read, so that fields of their bases are known."""
        structs = [cls for cls in _classes(pkg) if _is_struct(cls)]
        signatures = [(cls, _parameters(cls)) for cls in structs]
        for cls, parameters in signatures:
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))
            for name in [*(parameter.name for parameter in parameters), "__post_init__"]:
                if name in cls.members and not cls.members[name].docstring:
                    cls.del_member(name)


def _classes(owner: griffe.Module | griffe.Class) -> list[griffe.Class]:
    inner = [member for member in owner.members.values() if isinstance(member, griffe.Module | griffe.Class)]
    return [each for each in inner if isinstance(each, griffe.Class)] + [
        cls for each in inner for cls in _classes(each)
    ]


def _is_struct(cls: griffe.Class) -> bool:
    return any(str(base).rpartition(".")[2] == "Struct" for each in _lineage(cls) for base in each.bases)


def _lineage(cls: griffe.Class) -> list[griffe.Class]:
    """A class after those of its bases that are in the package, in the order in which fields are inherited."""
    return [*reversed(cls.mro()), cls]


def _parameters(cls: griffe.Class) -> list[griffe.Parameter]:
    fields = {
        name: griffe.Parameter(
            name,
            annotation=member.annotation,
            default=member.value,
            kind=griffe.ParameterKind.positional_or_keyword,
        )
        for each in _lineage(cls)
        for name, member in each.members.items()
        if isinstance(member, griffe.Attribute)
        and member.annotation
        and not str(member.annotation).startswith("ClassVar")
    }
    return list(fields.values())
