"""Chat templates of a model folder, rendered as `transformers` renders them, without needing it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from jobs.errors import ChatRefusedError, WorkloadError

TEMPLATE_DAY = "01 Jan 2025"
"""What every template is told the date is: a workload must have the same tokens on any day."""
SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


class _Generation(Extension):
    """`{% generation %}`: marks the assistant's text for training; it renders as what it holds."""

    tags = {"generation"}  # noqa: RUF012  the attribute jinja2 documents

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """The chat template of a model folder with the special tokens it may name."""

    def __init__(self, source: str, special: Mapping[str, str], *, where: str) -> None:
        self.source = source
        self.special = dict(special)
        self._where = where
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda _format: TEMPLATE_DAY
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            message = f"{where}: the chat template cannot be parsed ({error})"
            raise WorkloadError(message) from error

    @classmethod
    def from_folder(cls, folder: Path) -> "ChatTemplate":
        """Read `chat_template.jinja`, or `chat_template` of `tokenizer_config.json`.

        Raises:
            WorkloadError: the folder has neither, or they are damaged.
        """
        config = _read_json(folder / "tokenizer_config.json")
        more = _read_json(folder / "special_tokens_map.json")
        special = {name: text for name in SPECIAL if (text := _token(config.get(name) or more.get(name)))}
        file = folder / "chat_template.jinja"
        source = file.read_text(encoding="utf-8") if file.exists() else _choose(config.get("chat_template"))
        if not source:
            message = (
                f"model folder {folder} has no chat template (no chat_template.jinja, none in "
                "tokenizer_config.json); use an instruct or chat model, or add a template"
            )
            raise WorkloadError(message)
        return cls(source, special, where=f"model folder {folder}")

    def render(self, messages: Sequence[tuple[str, str]]) -> str:
        """Return the prompt's text up to and including the marker that starts the assistant's answer.

        Raises:
            ChatRefusedError: the template refuses the messages, for instance a role it does not know.
        """
        chat = [{"role": role, "content": content} for role, content in messages]
        try:
            return self._template.render(
                messages=chat, tools=None, documents=None, add_generation_prompt=True, **self.special
            )
        except (jinja2.TemplateError, TypeError) as error:
            roles = " ".join(role for role, _ in messages)
            message = (
                f"{self._where}: the chat template refuses a conversation with the roles {roles} ({error})"
            )
            raise ChatRefusedError(message) from error


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        message = f"{path} is not JSON ({error})"
        raise WorkloadError(message) from error
    return value if isinstance(value, dict) else {}


def _choose(templates: Any) -> str | None:
    """Return the default template where a model brings several by name."""
    if isinstance(templates, list):
        named = {entry.get("name"): entry.get("template") for entry in templates if isinstance(entry, dict)}
        templates = named.get("default")
    return templates if isinstance(templates, str) else None


def _token(value: Any) -> str | None:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _to_json(value: Any, *, ensure_ascii: bool = False, indent: int | None = None, **options: Any) -> str:
    """Replace jinja2's filter, which escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **options)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)
