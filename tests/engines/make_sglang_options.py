"""Writes `sglang_options.json`: the options of SGLang's argument parser, read in its source and not run.

    pip download --no-deps sglang==0.5.23 && unzip sglang-0.5.23-*.whl -d SOURCE
    python tests/engines/make_sglang_options.py SOURCE > tests/engines/sglang_options.json

SGLang makes its options of the annotated fields in `srt/arg_groups/fields/`: `tp_size: A[int, Arg(...)]` is
the option `--tp-size`, with the aliases, choices and parser of its `Arg`. Not part of any test run.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIELDS = Path("sglang/srt/arg_groups/fields")
CHOICES = Path("sglang/srt/arg_groups/choices.py")


def constants(source: Path) -> dict[str, Any]:
    """Return the lists of choices that are written out in SGLang's module of them."""
    found: dict[str, Any] = {}
    for node in ast.parse((source / CHOICES).read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and (value := literal(node.value, found)) is not None:
                found[target.id] = value
    return found


def literal(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return a literal, or what a name of `names` stands for; None where it is computed."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def described(field: ast.AnnAssign, names: dict[str, Any]) -> dict[str, Any] | None:
    """Return one field's option as plain JSON; None where the field is none."""
    assert isinstance(field.target, ast.Name)
    annotation = field.annotation
    if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "A"):
        return None
    kind, told = annotation.slice.elts  # type: ignore[attr-defined]  # A takes a type and a text or an Arg
    given = {word.arg: word.value for word in told.keywords} if isinstance(told, ast.Call) else {}
    if "no_cli" in given:
        return None
    name = literal(given["cli_name"], names) if "cli_name" in given else None
    options = [name or "--" + field.target.id.replace("_", "-")]
    options += literal(given["aliases"], names) or [] if "aliases" in given else []
    return {"options": options, **value_of(ast.unparse(kind), given, names)}


def value_of(kind: str, given: dict[str | None, ast.expr], names: dict[str, Any]) -> dict[str, Any]:
    """Return what kind of value an option takes: none for a switch, several for a list."""
    plain = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    choices = literal(given["choices"], names) if "choices" in given else None
    if plain.startswith("Literal["):
        choices = choices or list(ast.literal_eval(plain.removeprefix("Literal")))
    read = plain if plain in ("int", "float") and "type_parser" not in given else "str"
    several = plain.startswith(("List[", "list[")) and "type_parser" not in given
    switch = plain == "bool" and "type_parser" not in given
    return {
        "kind": "switch" if switch else read,
        "nargs": (literal(given["nargs"], names) if "nargs" in given else None) or ("+" if several else None),
        "choices": list(choices) if choices else None,
    }


def options_of(source: Path) -> Iterator[dict[str, Any]]:
    """Yield every option."""
    names = constants(source)
    for path in sorted((source / FIELDS).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found = described(node, names)
                if found is not None:
                    yield found


def main() -> None:
    """Write the list."""
    source = Path(sys.argv[1])
    version = next(source.glob("sglang-*.dist-info")).name.removeprefix("sglang-").removesuffix(".dist-info")
    lines = ",\n".join(json.dumps(option) for option in options_of(source))
    sys.stdout.write(f'{{"version": "{version}", "options": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
