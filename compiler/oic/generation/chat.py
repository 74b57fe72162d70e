"""Messages of a chat as the text that a model was trained on: the template that a checkpoint has for it.

A template is a program of whoever made the checkpoint.  It runs in the sandbox of Jinja, over plain data: it reaches no
file and no function but those below, and can be interrupted.  Products stay small; other texts that it makes may take
as much memory as it asks for.
Source: `apply_chat_template` of Hugging Face's transformers, whose texts these are.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from traceback import extract_tb
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import Node, Scope
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from oic.diagnostics import OicError, fail
from oic.generation.gguf_vocabulary import PREFIX
from oic.model import hf
from oic.model.file import ModelFile

JINJA, TOKENIZER = "chat_template.jinja", "tokenizer_config.json"
KEY, GGUF = "chat_template", "tokenizer.chat_template"
NAMED = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")
"""Tokens that a template may write, by the keys that name them."""
MOST = 1 << 20
"""Characters, or bits of a number, that a product in a template may have."""


class ChatTemplate:
    """The template of a checkpoint.

    text    in Jinja's language
    where   it was found, for messages
    tokens  texts of special tokens by name
    Raises OicError `chat-template`.
    """

    def __init__(self, text: str, where: str, tokens: Mapping[str, str]) -> None:
        self.tokens = tokens
        self._where = where
        try:
            self._template = _environment().from_string(text)
        except Exception as error:  # of Jinja, or of Python, which compiles what Jinja makes
            raise self._refused(error) from None

    def render(self, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> str:
        """The text of messages, up to where the answer begins.

        messages   each with `role` and `content`, and what else the template reads
        settings   what else the template asks for, by name: `enable_thinking`
        Raises OicError `chat-template` for what the template refuses, and for what is no plain data.
        """
        try:
            plain = json.loads(json.dumps([messages, settings], allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise fail("chat-template", f"messages and settings are plain data: {error}") from None
        shown = [{k: v for k, v in message.items() if v is not None} for message in plain[0]]
        known = {"tools": None, "documents": None, "add_generation_prompt": True}
        try:
            return self._template.render({**known, **self.tokens, **plain[1], "messages": shown})
        except Exception as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> OicError:
        """What a template says, or what is wrong with it, and in which line."""
        frames = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == "<template>"]
        line = error.lineno if isinstance(error, TemplateSyntaxError) else frames[-1] if frames else None
        said = str(error) or type(error).__name__
        place = f"{self._where}, line {line}" if line else self._where
        if type(error) is TemplateError:  # what it raises itself
            return fail("chat-template", f"{place}: the template refuses these messages: {said}")
        return fail("chat-template", f"{place}: {said}", hint=f"{JINJA} in the folder is read before any other")


def template_of(homes: Sequence[Path], told: Mapping[str, Any]) -> ChatTemplate | None:
    """The template in the first folder that has one, or of a GGUF file's metadata; None where there is none.

    Raises OicError for a template, or a file with one, that is damaged.
    """
    config = next((home / TOKENIZER for home in homes if (home / TOKENIZER).is_file()), None)
    said = {} if config is None else hf.configuration(config)[0]
    pieces = told.get(f"{PREFIX}tokens", [])
    tokens = {}
    for name in NAMED:
        number = told.get(f"{PREFIX}{name}_id", -1)
        piece = pieces[number] if isinstance(number, int) and 0 <= number < len(pieces) else None
        if isinstance(token := said.get(name, said.get(f"{name}.content", piece)), str):
            tokens[name] = token
    named = {said[f"{KEY}.{i}.name"]: f"{KEY}.{i}.template" for i in range(len(said)) if f"{KEY}.{i}.name" in said}
    text, where = said.get(KEY, said.get(named.get("default", ""))), f"{config}: '{KEY}'"
    if (own := next((home / JINJA for home in homes if (home / JINJA).is_file()), None)) is not None:
        file = ModelFile.open(own)
        text, where = file.text(0, file.size, "template"), str(own)
    elif text is None:
        text, where = told.get(GGUF), f"'{GGUF}'"
    return ChatTemplate(text, where, tokens) if isinstance(text, str) else None


class _Generation(Extension):
    """`{% generation %}` around what a model is trained to say: all the same where it is only read."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        return Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Names(Namespace):
    """`namespace()`, whose names do not stand in for what Python itself asks of an object."""

    def __init__(*args: Any, **names: Any) -> None:
        self, *given = args
        Namespace.__init__(self)
        for name, value in dict(*given, **names).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise SecurityError(f"a name of a namespace begins with a letter, not {name!r}")
        super().__setitem__(name, value)


class _Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's own, without products that take for ever, or all memory, in one operation."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        size = 0
        if isinstance(left, int) and isinstance(right, int):
            size = left.bit_length() * (right if operator == "**" else 1) + right.bit_length()
        elif isinstance(left, str | list | tuple) and isinstance(right, int):
            size = len(left) * right
        elif isinstance(left, int) and isinstance(right, str | list | tuple):
            size = left * len(right)
        if size > MOST:
            raise SecurityError(f"the result of '{operator}' is too large")
        return super().call_binop(context, operator, left, right)


def _environment() -> _Sandbox:
    made = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    made.filters["tojson"] = _json
    made.globals |= {
        "raise_exception": _raise, "strftime_now": lambda text: datetime.now().strftime(text),
        "dict": lambda *args, **names: dict(*args, **names), "namespace": _Names,
    }  # fmt: skip
    return made


def _raise(message: str = "it does not say why") -> None:
    raise TemplateError(message)


def _json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as it is; Jinja's own filter writes it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
