"""An extension of Griffe: signatures of structs and of functions that take their options as a typed dict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class Signatures(griffe.Extension):
    """Completes signatures when the whole package is read, so that inherited fields are known."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Give each struct an `__init__`, and each function the options that `**options: Unpack[...]` stands for."""
        classes = list(_classes(pkg))
        signatures = [
            (cls, _fields(cls, griffe.ParameterKind.positional_or_keyword)) for cls in classes if _is_struct(cls)
        ]
        for cls, parameters in signatures:
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))
            for name in [*(parameter.name for parameter in parameters), "__post_init__"]:
                if name in cls.members and not cls.members[name].docstring:
                    cls.del_member(name)
        for owner in (pkg, *_modules(pkg), *classes):
            for member in owner.members.values():
                if isinstance(member, griffe.Function):
                    _unpack(member, pkg)


def _modules(owner: griffe.Module) -> Iterator[griffe.Module]:
    for member in owner.members.values():
        if isinstance(member, griffe.Module):
            yield member
            yield from _modules(member)


def _classes(owner: griffe.Module | griffe.Class) -> Iterator[griffe.Class]:
    for member in owner.members.values():
        if isinstance(member, griffe.Class):
            yield member
        if isinstance(member, griffe.Module | griffe.Class):
            yield from _classes(member)


def _is_struct(cls: griffe.Class) -> bool:
    return any(str(base).rpartition(".")[2] == "Struct" for each in _lineage(cls) for base in each.bases)


def _lineage(cls: griffe.Class) -> list[griffe.Class]:
    """A class after those of its bases that are in the package, in the order in which fields are inherited."""
    return [*reversed(cls.mro()), cls]


def _fields(cls: griffe.Class, kind: griffe.ParameterKind, default: str | None = None) -> list[griffe.Parameter]:
    """The fields of a class and its bases as parameters."""
    fields = {
        name: griffe.Parameter(name, annotation=member.annotation, default=member.value or default, kind=kind)
        for each in _lineage(cls)
        for name, member in each.members.items()
        if isinstance(member, griffe.Attribute)
        and member.annotation
        and not str(member.annotation).startswith("ClassVar")
    }
    return list(fields.values())


def _unpack(function: griffe.Function, pkg: griffe.Module) -> None:
    """Put the keys of a typed dict in place of a parameter that unpacks it."""
    for parameter in list(function.parameters):
        annotation = parameter.annotation
        if isinstance(annotation, griffe.ExprSubscript) and str(annotation.left).rpartition(".")[2] == "Unpack":
            options = pkg.modules_collection[annotation.slice.canonical_path]
            del function.parameters[parameter.name]
            for option in _fields(options, griffe.ParameterKind.keyword_only, default="..."):
                function.parameters.add(option)
