"""Chats: templates of checkpoints, what they may not do, and sessions that read no token twice."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import oic
from generation.test_gguf_vocabulary import PIECES
from importers import checkpoints
from oic.cli.main import main
from oic.generation.chat import ChatTemplate
from oic.generation.text_session import TextSession

pytestmark = pytest.mark.xdist_group("generate-chat")

CHATML = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message['content'] + '<|im_end|>\\n' }}
{%- endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}
"""
# Written here in the manner of the families that are named; what transformers makes of them is compared where it is installed.
GEMMA = """{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}
{% for message in messages %}{% set role = 'model' if message.role == 'assistant' else message.role %}
{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('turns alternate') }}{% endif %}
{{ '<|im_start|>' + role + '\n' + message.content | trim + '<|im_end|>\n' }}{% endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>model\n' }}{% endif %}"""
LLAMA = """{{- bos_token }}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}{%- set messages = messages[1:] %}
{%- else %}{%- set system = "" %}{%- endif %}
{{- "<|im_start|>system\\n" + strftime_now("%Y") + system + "<|im_end|>" }}
{%- for message in messages if not 'tool_calls' in message %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>' }}
{%- endfor %}
{{- '<|im_start|>assistant\\n' if add_generation_prompt }}"""
MISTRAL = """{%- set ns = namespace(index=0) %}{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'system' %}{%- continue %}{%- endif %}
    {%- set ns.index = ns.index + 1 %}
    {%- if message["role"] == "user" %}{{- "[" ~ ns.index ~ "] " + message["content"] + "[/]" }}
    {%- else %}{% generation %}{{- " " + message.content|trim + eos_token }}{% endgeneration %}{%- endif %}
{%- endfor %}"""
QWEN = """{%- for message in messages[::-1] %}{{ message | tojson }}{{ '\n' }}
{%- if '</think>' in message.content %}{{- message.content.split('</think>')[-1].lstrip('\\n') }}{%- endif %}
{%- endfor %}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}"""
TEMPLATES = {"chatml": CHATML, "gemma": GEMMA, "llama": LLAMA, "mistral": MISTRAL, "qwen": QWEN}
CHATS = [
    [{"role": "user", "content": "a <b> & 'c'"}],
    [{"role": "user", "content": " he "}, {"role": "assistant", "content": "x</think>\n\né "}, {"role": "user", "content": "日"}],
    [{"role": "system", "content": "be \"a\""}, {"role": "user", "content": "b"}],
]  # fmt: skip
NAMES = {"bos_token": "<s>", "eos_token": "<|im_end|>"}
START, END = len(PIECES), len(PIECES) + 1


def instruct(folder: Path, template: str | None = CHATML, family: str = "llama", **settings: Any) -> Path:
    """A random checkpoint with a vocabulary and a template."""
    pieces = [*PIECES, ("<|im_start|>", 0.0, 3), ("<|im_end|>", 0.0, 3)]
    lists = {f"tokenizer.ggml.{n}": list(c) for n, c in zip(("tokens", "scores", "token_type"), zip(*pieces))}
    ends = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.bos_token_id": 1}
    config = {"vocab_size": len(pieces), "max_position_embeddings": 192, "eos_token_id": 2} | lists | ends | settings
    checkpoints.checkpoint(folder, family, **config)
    (folder / "tokenizer_config.json").write_text(json.dumps(NAMES))
    if template is not None:
        (folder / "chat_template.jinja").write_text(template)
    return folder


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return instruct(tmp_path_factory.mktemp("chat") / "in")


@pytest.fixture(scope="module")
def generator(source: Path) -> Iterator[oic.Generator]:
    with oic.Generator(source) as made:
        yield made


def rendered(text: str, messages: Any = CHATS[0], **settings: Any) -> str:
    return ChatTemplate(text, "t.jinja", NAMES).render(messages, settings)


def test_messages_become_the_tokens_that_the_template_names(generator: oic.Generator) -> None:
    """Control tokens are one id each, and nothing is put before the text."""
    found = generator.prompt(CHATS[2])
    text = "<|im_start|>system\nbe \"a\"<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n"
    assert [i for i in found if i >= START] == [START, END, START, END, START]
    assert generator.template().render(CHATS[2], {}) == text and generator.tokenizer().decode(found) == "system\nbe \"a\"\nuser\nb\nassistant\n"
    assert generator.stops == [2] and sorted(generator.ends) == [2, END]


def test_ends_of_the_configuration_that_are_no_ids_end_nothing(tmp_path: Path) -> None:
    with oic.Generator(instruct(tmp_path / "in", eos_token_id=[-1, 2, END + 1])) as made:
        assert sorted(made.ends) == [2, END]
        assert list(made.stream(made.prompt(CHATS[0]), 1, stop_ids=made.ends))


@pytest.mark.parametrize("name", TEMPLATES)
def test_texts_are_those_of_transformers(name: str) -> None:
    theirs = pytest.importorskip("transformers.utils.chat_template_utils").render_jinja_template
    for messages in CHATS:
        for settings in ({}, {"enable_thinking": False}):
            try:
                wanted = theirs([messages], chat_template=TEMPLATES[name], add_generation_prompt=True, **NAMES, **settings)[0][0]
            except Exception as error:
                with pytest.raises(oic.OicError, match=f"the template refuses these messages: {error}"):
                    rendered(TEMPLATES[name], messages, **settings)
            else:
                assert rendered(TEMPLATES[name], messages, **settings) == wanted


def test_templates_read_as_they_are_written_for() -> None:
    assert rendered(GEMMA) == "<s><|im_start|>user\na <b> & 'c'<|im_end|>\n<|im_start|>model\n"
    assert rendered(MISTRAL, CHATS[1]) == "<s>[1]  he [/] x</think>\n\né<|im_end|>[3] 日[/]"
    assert rendered(QWEN, enable_thinking=False).startswith('{"role": "user", "content": "a <b> & \'c\'"}\n<think>')
    assert rendered("{{ tools is none }}{{ messages[0].name is defined }}", [{"role": "user", "name": None}]) == "TrueFalse"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\n{% for %}", "t.jinja, line 2: Expected"), ("\n\n{{ nobody.content }}", "t.jinja, line 3: 'nobody' is undefined"),
        ("\n{{ raise_exception('no') }}", "t.jinja, line 2: the template refuses these messages: no"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"), ("{{ messages.append(1) }}", "unsafe"), ("{% include 'x' %}", "no loader"),
        ("{{ cycler.__init__.__globals__ }}", "unsafe"), ("{% set ns = namespace(__class__=1) %}", "begins with a letter"),
        ("{% set ns = namespace() %}{% set ns._x = 1 %}", "begins with a letter"),
        ("{{ 9 ** 9999999 }}", "too large"), ("{{ 'a' * 99999999 }}", "too large"), ("{{ 99999999 * [1] }}", "too large"),
        ("{% set ns = namespace(x=2 ** 600000) %}{% set ns.x = ns.x * ns.x %}", "too large"),
        ("{% for x in range(1000000) %}{% endfor %}", "Range too big"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"), ("{{ " + "(" * 5000, "recursion"),
        ("{% if 1 %}" * 200 + "{% endif %}" * 200, "too many levels"), ("{% break %}", "outside loop"), ("{{ 1 / 0 }}", "zero"),
    ],
)  # fmt: skip
def test_what_templates_may_not_do(text: str, said: str) -> None:
    """Neither run code, nor keep Python from hearing an interrupt, nor end in anything but a refusal with a place."""
    with pytest.raises(oic.OicError, match=said) as refused:
        rendered(text)
    assert [d.slug for d in refused.value.diagnostics] == ["chat-template"] and "t.jinja" in str(refused.value)


def test_where_templates_are_found(tmp_path: Path) -> None:
    """A file of its own, one text or several by name in the tokenizer's configuration, a GGUF file's key; then none."""
    folder = instruct(tmp_path / "in", "own {{ eos_token }}", **{"tokenizer.chat_template": "gguf {{ bos_token }}"})
    config = folder / "tokenizer_config.json"
    with oic.Generator(folder) as generator:

        def found() -> str:
            generator._template = None
            return generator.template().render(CHATS[0], {})

        assert found() == "own <|im_end|>"
        (folder / "chat_template.jinja").unlink()
        config.write_text(json.dumps({"eos_token": {"content": "<e>"}, "chat_template": "one {{ eos_token }}"}))
        assert found() == "one <e>"
        several = [{"name": name, "template": name + " {{ unk_token }}"} for name in ("tool_use", "default")]
        config.write_text(json.dumps({"unk_token": None, "chat_template": several}))
        assert found() == "default "
        config.unlink()
        assert found() == "gguf <s>"
        generator._told = {k: v for k, v in generator._told.items() if k != "tokenizer.chat_template"}
        with pytest.raises(oic.OicError, match="there is no chat template in '.*'\n.*put chat_template.jinja there"):
            found()
        generator.source = folder / "model.gguf"
        generator.source.touch()
        with pytest.raises(oic.OicError, match="there is no chat template in '.*gguf'\n.*jinja beside it"):
            found()


def test_what_is_no_message_and_no_text(generator: oic.Generator) -> None:
    for messages, said in ((["hello"], r"messages\[0\] is a mapping of names"), ("hello", "messages is a list of messages"),
                           ([{"role": "user", "content": b"x"}], "messages and settings are plain data")):  # fmt: skip
        with pytest.raises(oic.OicError, match=said):
            generator.prompt(messages)  # type: ignore[arg-type]
    for text in ("h\udcff", "\ud83d"):
        with pytest.raises(oic.OicError, match="is none of Unicode"):
            generator.encode(text)


# ---------------------------------------------------------------- sessions


@pytest.mark.parametrize("family", ["llama", "mistral", "mamba"])
def test_a_session_reads_what_it_has_not_read(family: str, tmp_path: Path) -> None:
    """The same bits as from the start: after more of the same, another end, less, and nothing in common.

    Where a ring has come around, or a state cannot go back, what is not shared as a whole is read anew.
    """
    rng = np.random.default_rng(0)
    with oic.Generator(checkpoints.checkpoint(tmp_path / "in", family, max_position_embeddings=40)) as generator:
        first = rng.integers(3, 24, 12).tolist()
        with generator.session() as session:
            for prompt in (first, [*first, 5, 6], first[:7], [*first[:7], 9, 9], first, first, [4, *first], [4]):
                wanted = [(t.id, t.logprob) for t in generator.stream(prompt, 5, stop_ids=())]
                known = session.known(prompt)
                assert [(t.id, t.logprob) for t in generator.stream(prompt, 5, stop_ids=(), session=session)] == wanted
                assert session.ids == [*prompt, *(i for i, _ in wanted[:-1])]
                if family == "llama" and prompt != first and prompt[0] == first[0]:
                    assert known >= 7


def test_saved_and_forked_sessions_go_on(generator: oic.Generator) -> None:
    prefix, rest = [1, 2, 3, 4, 5], [7, 8]
    wanted = [t.logprob for t in generator.stream([*prefix, *rest], 4)]
    with generator.session() as session:
        next(generator.stream(prefix, 1, session=session))
        saved = session.save()
        with session.fork() as other:
            assert [t.logprob for t in generator.stream([*prefix, *rest], 4, session=other)] == wanted
            assert session.ids == prefix and session.save() == saved
    with generator.session() as later:
        later.load(saved)
        assert later.known([*prefix, *rest]) == 5
        assert [t.logprob for t in generator.stream([*prefix, *rest], 4, session=later)] == wanted
        before = later.ids, later.save()
        for damaged in (b"", saved[:9], saved[:-1], bytes([*saved[:12], saved[12] ^ 1, *saved[13:]]), saved[:12], b"x" * 99, 3):
            with pytest.raises(oic.StepError):
                later.load(damaged)  # type: ignore[arg-type]
        assert (later.ids, later.save()) == before


@pytest.mark.parametrize("family", ["llama", "mistral", "lfm2"])
def test_what_is_refused_is_as_if_it_had_not_been_asked(family: str, tmp_path: Path) -> None:
    """A full cache, ids that the model does not have, a prompt too long: what was read is known, and goes on."""
    first = list(range(3, 13))
    with (
        oic.Generator(checkpoints.checkpoint(tmp_path / "in", family, max_position_embeddings=16)) as generator,
        generator.session() as session,
    ):
        tokens = [t.id for t in generator.stream(first, 99, stop_ids=(), session=session)]
        read = [*first, *tokens[:-1]]
        assert session.ids == read and len(read) == 16
        for prompt in ([*first, 9999], [4] * 17):
            session.reset()
            list(generator.stream(first, 1, session=session))
            with pytest.raises(oic.OicError):
                list(generator.stream(prompt, 1, session=session))
            assert session.ids == first
            with session.fork() as other:
                wanted = [t.logprob for t in generator.stream([*first, 5], 4)]
                assert [t.logprob for t in generator.stream([*first, 5], 4, session=other)] == wanted
        with pytest.raises(TypeError, match="a session cannot be copied"):
            copy.copy(session)


def test_an_interrupted_step_is_not_known_to_have_been_read(generator: oic.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [t.logprob for t in generator.stream([1, 2, 3], 4)]
    with generator.session() as session:
        step, ran = session.executor.step, []

        def interrupted(*given: Any, **inputs: Any) -> Any:
            ran.append(step(*given, **inputs))
            if len(ran) == 3:
                raise KeyboardInterrupt
            return ran[-1]

        monkeypatch.setattr(session.executor, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(generator.stream([1, 2, 3], 4, session=session))
        assert [t.logprob for t in generator.stream([1, 2, 3], 4, session=session)] == wanted


@pytest.mark.parametrize("held", [False, True])
def test_a_session_goes_on_with_one_text_at_a_time(generator: oic.Generator, held: bool) -> None:
    """A text whose session has read something else meanwhile would go on after that."""
    wanted = [t.id for t in generator.stream([7, 8], 3, stop_ids=())]
    others: list[Callable[[TextSession], object]] = [
        lambda s: [t.id for t in generator.stream([7, 8], 3, stop_ids=(), session=s)] == wanted,
        lambda s: s.reset() is None, lambda s: s.load(s.save()) is None,
    ]  # fmt: skip
    for other in others:
        with generator.session() as session:
            first = generator.stream([1, 2, 3], 9, stop_ids=(), session=session)
            next(first)
            if held:
                next(first)
            assert other(session)
            with pytest.raises(oic.OicError, match="read something else"):
                list(first)
    with generator.session() as session:
        first = generator.stream([1, 2, 3], 9, stop_ids=(), session=session)
        begun = [next(first).id]
        with session.fork() as fork:
            assert [t.id for t in generator.stream([7, 8], 3, stop_ids=(), session=fork)] == wanted
        assert begun + [t.id for t in first] == [t.id for t in generator.stream([1, 2, 3], 9, stop_ids=())]


def test_sessions_of_another_graph_are_refused(generator: oic.Generator, tmp_path: Path) -> None:
    with (
        oic.Generator(checkpoints.checkpoint(tmp_path / "in", "gpt2")) as other, other.session() as session,
        pytest.raises(oic.OicError, match="session is of another generator"),
    ):  # fmt: skip
        next(generator.stream([1], 1, session=session))


# ---------------------------------------------------------------- the command


def test_turns_cost_their_own_tokens(source: Path, generator: oic.Generator) -> None:
    command = ["generate", str(source), "--chat", "a", "--system", "be", "-n", "6", "--json"]
    rows = [json.loads(line) for line in CliRunner().invoke(main, [*command, "--chat", "he"]).stdout.splitlines()]
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": "a"}]
    assert rows[0]["prompt"] == generator.prompt(messages) and rows[0]["known"] == 0
    assert rows[1]["known"] >= len(rows[0]["prompt"]) and len(rows) == 2
    messages += [{"role": "assistant", "content": rows[0]["text"]}, {"role": "user", "content": "he"}]
    assert rows[1]["prompt"] == generator.prompt(messages)
    assert rows[1]["ids"] == [t.id for t in generator.stream(rows[1]["prompt"], 6, stop_ids=generator.ends)]
    piped = CliRunner().invoke(main, [*command[:2], "--chat", "-", *command[4:]], input="a\n\nhe")
    assert [json.loads(line)["ids"] for line in piped.stdout.splitlines()] == [row["ids"] for row in rows]
    shown = CliRunner().invoke(main, command[:-1])
    assert shown.exit_code == 0 and f"{len(rows[0]['prompt'])} + 6 tokens" in shown.stderr


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--chat", "a", "--text", "b"], 2, "either --text, --ids or --chat"),
        (["--text", "a", "--system", "b"], 2, "go with --chat"),
        (["--chat", "a", "--template", "b"], 2, "is not KEY=VALUE"),
        (["--chat", "-"], 1, "byte 1 of a text that was read, 0xff, is no UTF-8"),
        (["--chat", "a" * 200], 1, "more than the cache has room for"),
    ],
)
def test_chats_that_are_refused(options: list[str], status: int, said: str, source: Path) -> None:
    done = CliRunner().invoke(main, ["generate", str(source), *options], input=b"a\xff\n")
    assert done.exit_code == status and said in done.stderr
