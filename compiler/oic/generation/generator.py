"""Generation with a compiled model: what is given is fed at once, then one token a step."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic import arguments
from oic.api import Synthesizer
from oic.check.source import parse_file
from oic.diagnostics import Diagnostic, OicError, fail
from oic.generation.chat import JINJA, ChatTemplate, template_of
from oic.generation.detokenizer import Detokenizer
from oic.generation.feeding import kind_of, token_ids, too_long
from oic.generation.gguf_vocabulary import Packaged, Scored
from oic.generation.sampling import Sampling, log_probability
from oic.generation.text_session import TextSession
from oic.generation.tokenizer import Tokenizer, described, no_tokenizer, tokenizer_of
from oic.importers import import_checkpoint
from oic.importers.folder import GRAPH, MODEL
from oic.importers.transformer import POSITIONS
from oic.model import Model, hf

GENERATION = "generation_config.json"
"""What a checkpoint says of generation beside its configuration, and before it."""


@dataclass(frozen=True)
class Token:
    """One new token.

    text      what it adds to the text; "" without a tokenizer, or where more tokens make up the next character
    logprob   ln of the probability that the model gives it
    seconds   from the step before
    """

    id: int
    text: str
    logprob: float
    seconds: float


@dataclass
class Stop:
    """Why generation ended: 'count', 'stop' (an id or a text), or 'context', when the cache is full."""

    reason: str = "count"


@dataclass(frozen=True)
class Precision:
    """What a constant is stored as.

    kept    it is as declared
    error   ‖ŵ - w‖ / ‖w‖, what that makes of it
    reason  why it is as declared, whatever a rule says; ""
    """

    name: str
    storage: str
    nbytes: int
    kept: bool
    error: float
    reason: str = ""


@dataclass
class Generator:
    """A decoder or an encoder–decoder, built once, and its tokenizer.

    source    a checkpoint (Hugging Face folder), or a folder that `oic import` wrote
    context   tokens that the cache has room for, of an encoder–decoder also those of a source; None: as imported, or as
              the configuration says
    target, threads, weights   of the build, as for Synthesizer
    config, settings  of a checkpoint, as for import_checkpoint
    Raises OicError.
    """

    source: Path
    context: int | None = None
    target: str = "host"
    threads: int = 1
    config: str | Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    weights: str = ""
    _scratch: Any = field(default=None, repr=False)
    _tokenizer: Tokenizer | None = field(default=None, repr=False)
    _template: ChatTemplate | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.source = Path(arguments.path("source", self.source))
        self.context = arguments.optional(arguments.integer, "context", self.context)
        self.settings = arguments.mapping("settings", self.settings)
        if not self.source.exists():
            raise fail("model-open", f"there is no '{self.source}'")
        folder = self.source
        self.warnings: Sequence[Diagnostic] = ()
        if not (folder / GRAPH).is_file():
            self._scratch = tempfile.TemporaryDirectory(prefix="oic-import-")
            folder = Path(self._scratch.name)
            made = import_checkpoint(
                self.source, folder, config=self.config, settings=self.settings, context=self.context
            )
            self.warnings = made.warnings
        elif self.config is not None or self.settings:
            raise fail("import-config", f"'{self.source}' was imported: a configuration is for checkpoints",
                       hint="import the checkpoint again, or change sizes in the graph")  # fmt: skip
        model = Model.open(folder / MODEL)
        graph = parse_file(folder / GRAPH)
        kind = kind_of(block.name for block in graph.blocks)
        known = [size.name for size in graph.sizes if size.name in kind.sizes]
        sizes = {} if self.context is None else dict.fromkeys(known, self.context)
        if self.context is not None and not sizes:
            raise fail("import-config", f"'{self.source}' has a state of fixed size, and no context to choose")
        most = model.metadata.get(POSITIONS)
        if self.context is not None and isinstance(most, int) and self.context > most:
            message = f"a context of {self.context} tokens, but '{self.source}' has positions for {most}"
            raise fail("import-config", message, hint="`oic import --context` asks for others, where a model has them")
        files = dict.fromkeys(model.info(name).file for name in model.names())
        self._homes = [folder, self.source, *(Path(file).parent for file in files)]
        self._told = model.metadata | _generation(self._homes) | dict(self.settings)
        self._built = Synthesizer(
            graph, model, sizes=sizes, target=self.target, threads=self.threads, weights=self.weights
        ).build()
        self._first = self._built.make_executor()
        self.stops = token_ids(self._told, "eos_token_id")
        self._kind = kind(self._first.interface, self._told, self.source)

    @property
    def prefill(self) -> int:
        """Tokens of one step at most."""
        return self._kind.prefill

    @property
    def precisions(self) -> list[Precision]:
        """What became of each constant; none where the model has no groups and no `weights` are asked for."""
        weights: Mapping[str, Any] = self._built.program.module.weights
        return [
            Precision(c.symbol, c.storage, c.nbytes, c.kept, 0.0 if c.kept else weights[c.symbol].error(), c.reason)
            for c in self._built.program.stored
        ]

    def close(self) -> None:
        """Give memory and temporary files back."""
        self._first.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tokenizer(self) -> Tokenizer:
        """What turns texts into ids, from the checkpoint's folder; `OicError` `tokenizer` where there is none."""
        if self._tokenizer is None:
            begin = next(iter(token_ids(self._told, "bos_token_id")), None)
            found = (tokenizer_of(home, begin) for home in self._homes)
            self._tokenizer = next((t for t in found if t), None) or described(self._told)
        if self._tokenizer is None:
            raise no_tokenizer(self.source)
        return self._tokenizer

    def reads(self) -> bool:
        """There is a tokenizer that can be used: tokens have texts."""
        try:
            return self.tokenizer() is not None
        except OicError:
            return False

    def encode(self, text: str) -> list[int]:
        """The ids of a text; `OicError` `tokenizer` where there is none for it."""
        return self.tokenizer().encode(_unicode(text))

    def template(self) -> ChatTemplate:
        """How messages become a text, as the checkpoint says; `OicError` `chat-template` where it does not."""
        if self._template is None:
            self._template = template_of(self._homes, self._told)
        if self._template is None:
            place = "beside it" if self.source.is_file() else "there"
            hint = f"put {JINJA} {place}, or go on with texts like those that the model was trained on (--text)"
            raise fail("chat-template", f"there is no chat template in '{self.source}'", hint=hint)
        return self._template

    def prompt(self, messages: Sequence[Mapping[str, Any]], settings: Mapping[str, Any] | None = None) -> list[int]:
        """The ids of messages of a chat, up to where the answer begins, as `apply_chat_template` of transformers.

        messages  {"role": "user", "content": "…"}, and so on
        settings  what the template asks for besides: {"enable_thinking": False}
        Raises OicError `chat-template`, `tokenizer`.
        """
        given = arguments.sequence("messages", messages, "messages")
        rows = [arguments.mapping(f"messages[{i}]", message) for i, message in enumerate(given)]
        return self._marked(self.template().render(rows, arguments.mapping("settings", settings)))

    @property
    def ends(self) -> list[int]:
        """Ids that end an answer: those of the configuration, and the token that ends what the tokenizer reads."""
        own = self._marked(self.template().tokens.get("eos_token", ""))
        return [token for token in {*self.stops, *(own if len(own) == 1 else [])} if 0 <= token < self.vocab]

    def _marked(self, text: str) -> list[int]:
        tokenizer = self.tokenizer()
        if not isinstance(tokenizer, Packaged | Scored):
            message = f"the tokenizer of '{self.source}' knows no special tokens, of which templates are made"
            raise fail("chat-template", message)
        return tokenizer.marked(_unicode(text))

    def session(self) -> TextSession:
        """A session that has read nothing, for `stream`: it goes on with what it was given before."""
        if not self._first.is_open:
            raise fail("session-closed", "this generator is closed")
        return TextSession(self._built.make_executor())

    def stream(
        self, ids: Sequence[int], count: int = 32, sampling: Sampling | None = None, *,
        stop_ids: Sequence[int] | None = None, stop_texts: Sequence[str] = (), stop: Stop | None = None,
        session: TextSession | None = None,
    ) -> Iterator[Token]:  # fmt: skip
        """New tokens after a prompt, of an encoder–decoder the output for a source, as they come.

        stop_ids    ids that end the text, given like others; None: those of the configuration
        stop_texts  texts that end it once they are there; they need a tokenizer
        stop        is told why it ended
        session     of `session()`: what it has read of the prompt is not computed again; None: one of its own
        A cache that is full ends the text, with nothing overwritten.  Raises OicError for a prompt of no tokens, of
        ids that the model does not have, or of more than the cache holds.
        """
        ids, count = arguments.sequence("ids", ids, "token ids"), arguments.integer("count", count)
        arguments.require("sampling", sampling, Sampling | None, "an oic.Sampling or None")
        arguments.require("stop", stop, Stop | None, "a Stop or None")
        arguments.require("session", session, TextSession | None, "what session() gives, or None")
        if session is not None and session.executor.interface is not self._first.interface:
            raise fail("generate-prompt", "the session is of another generator", hint="session() of this one gives one")
        texts = (stop_texts,) if isinstance(stop_texts, str) else arguments.names("stop_texts", stop_texts) or ()
        if "" in texts:
            raise fail("generate-prompt", "a text that ends the output cannot be empty")
        given = [] if stop_ids is None else arguments.sequence("stop_ids", stop_ids, "token ids")
        for end in given:
            if not 0 <= arguments.integer("a stop id", end) < self.vocab:
                message = f"the text cannot end after {end}: ids of this model are 0 to {self.vocab - 1}"
                raise fail("generate-prompt", message)
        ends = frozenset(self.stops if stop_ids is None else given)
        with self.session() if session is None else nullcontext(session) as used:
            yield from self._tokens(used, ids, count, sampling or Sampling(), ends, texts, stop or Stop())

    def _tokens(
        self, session: TextSession, ids: Sequence[int], count: int, sampling: Sampling, ends: frozenset[int],
        texts: Sequence[str], stop: Stop,
    ) -> Iterator[Token]:  # fmt: skip
        """As `stream`."""
        start = time.perf_counter()
        if not self._kind.encodes and self.room is not None and len(ids) > self.room:
            raise too_long(len(ids))
        with session.executor._lock:
            given = self._kind.start(session, ids)
            logits, read = self._kind.last(session, given), session.ids
        tokenizer = self.tokenizer() if texts or self.reads() else None
        reader = Detokenizer(tokenizer, () if self._kind.encodes else ids) if tokenizer else None
        draw, text = np.random.default_rng(sampling.seed), ""
        for number in range(count):
            forced = self._kind.forced[number : number + 1]
            if np.isnan(logits).any():
                message = f"the logits of new token {number} are NaN: the model says nothing of what follows"
                raise fail("generate-logits", message, hint="weights that are NaN: oic inspect --stats MODEL")
            token = forced[0] if forced else sampling.choose(logits, draw)
            new = reader.add(token) if reader else ""
            text += new
            stopped = token in ends or any(s in text for s in texts)
            stop.reason = "stop" if stopped else "count"
            last = stopped or number + 1 == count
            held = reader is not None and not new and not last  # what is held back is given if nothing follows
            after, read = self._next(session, token, read) if held else (None, read)
            if reader and (last or (held and after is None)):
                new += reader.rest()
            now = time.perf_counter()
            yield Token(token, new, log_probability(logits, token), now - start)
            start = now
            if last:
                return
            after, read = (after, read) if held else self._next(session, token, read)
            if after is None:
                stop.reason = "context"
                return
            logits = after

    def _next(
        self, session: TextSession, token: int, read: list[int]
    ) -> tuple[NDArray[np.float32] | None, list[int]]:
        """The logits after one more token, and the list of what is read then; `read` is that list of before."""
        with session.executor._lock:
            if session.ids is not read:
                hint = "a session goes on with one text at a time: fork() gives others"
                raise fail("generate-prompt", "the session has read something else amid this text", hint=hint)
            return self._kind.next(session, token), session.ids

    @property
    def room(self) -> int | None:
        """Tokens that the cache has room for, as imported graphs say it; None: the state has a fixed size."""
        return self._built.program.binding.sizes.get(self._kind.sizes[-1])

    @property
    def encodes(self) -> bool:
        """The model is an encoder–decoder: what it is given is a source."""
        return self._kind.encodes

    @property
    def vocab(self) -> int:
        """How many tokens the logits are of; `OicError` `generate-interface` where that is no integer."""
        last = self._first.interface.variables["logits"].shape[-1]
        if not isinstance(last, int):
            raise fail("generate-interface", f"the graph of '{self.source}' gives logits of {last} tokens",
                       hint="a vocabulary is an integer")  # fmt: skip
        return last

    @property
    def checkpoint(self) -> Path:
        """The folder whose weights are used; `OicError` `model-open` where they lie in no such folder."""
        found = next((home for home in self._homes if (home / hf.CONFIG).is_file()), None)
        if found is None:
            raise fail("model-open", f"the weights of '{self.source}' are in no folder with a {hf.CONFIG}")
        return found

    def logits(self, fed: Sequence[int], *, given: int = 1, source: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Logits [len(fed), vocab]: row t follows token t; the first `given` are fed at once, the others one by one.

        source   what an encoder reads
        Raises OicError as `stream` does.
        """
        if source is not None and not self._kind.encodes:
            raise fail("generate-prompt", f"'{self.source}' is a decoder: nothing reads a source")
        if source is None and self._kind.encodes:
            raise fail("generate-prompt", f"'{self.source}' is an encoder–decoder: there is no source that it reads")
        with self.session() as session:
            self._kind.start(session, fed if source is None else source)
            return np.concatenate(list(self._kind.rows(session, fed, given)))

    def batch(
        self, prompts: Sequence[Sequence[int]], count: int = 32, sampling: Sampling | None = None, *, threads: int = 1,
        stop_ids: Sequence[int] | None = None, stop_texts: Sequence[str] = (), stops: Sequence[Stop] | None = None,
    ) -> list[list[Token]]:  # fmt: skip
        """New tokens after each of several prompts: sessions of their own over the same weights, on so many threads.

        stops   one a prompt: each is told why its text ended
        Prompt i is what `stream` makes of it with a seed that is i more.
        """
        how = Sampling() if sampling is None else sampling
        arguments.require("sampling", how, Sampling, "an oic.Sampling or None")
        prompts, threads = arguments.sequence("prompts", prompts, "prompts"), arguments.integer("threads", threads)
        told = [None] * len(prompts) if stops is None else arguments.sequence("stops", stops, "Stop")
        if len(told) != len(prompts):
            raise fail("generate-prompt", f"there are {len(told)} stops for {len(prompts)} prompts")

        def one(row: tuple[int, Sequence[int]]) -> list[Token]:
            number, ids = row
            seeded, stop = replace(how, seed=how.seed + number), told[number]
            return list(self.stream(ids, count, seeded, stop_ids=stop_ids, stop_texts=stop_texts, stop=stop))

        with ThreadPoolExecutor(max(1, threads)) as pool:
            return list(pool.map(one, enumerate(prompts)))


def generate(
    source: str | Path, prompt: str | Sequence[int], *, count: int = 32, temperature: float = 0.0, top_k: int = 0,
    top_p: float = 1.0, seed: int = 0, stop_ids: Sequence[int] | None = None, stop_texts: Sequence[str] = (),
    context: int | None = None, target: str = "host", config: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Iterator[Token]:  # fmt: skip
    """New tokens after a prompt, as they come, from a checkpoint or an imported folder.

    prompt   what a decoder goes on with, or an encoder reads: a text (the folder has a tokenizer), or token ids
    The others as for Generator, Sampling and Generator.stream.  Raises OicError.
    """
    folder = Path(arguments.path("source", source))
    settings = arguments.mapping("settings", settings)
    with Generator(folder, context, target, config=config, settings=settings) as generator:
        ids = generator.encode(prompt) if isinstance(prompt, str) else arguments.sequence("prompt", prompt, "token ids")
        sampling = Sampling(temperature, top_k, top_p, seed)
        yield from generator.stream(ids, count, sampling, stop_ids=stop_ids, stop_texts=stop_texts)


def _unicode(text: str) -> str:
    """The text; `OicError` `tokenizer` where it has halves of characters, as bytes become that are no UTF-8."""
    try:
        arguments.text("text", text).encode()
    except UnicodeEncodeError as error:
        message = f"{text[error.start]!r}, character {error.start} of the text, is none of Unicode"
        raise fail("tokenizer", message, hint="texts are read as UTF-8") from None
    return text


def _generation(homes: Sequence[Path]) -> dict[str, Any]:
    """What the first of the folders with such a file says of generation.  Raises OicError."""
    path = next((home / GENERATION for home in homes if (home / GENERATION).is_file()), None)
    return {} if path is None else hf.configuration(path)[0]
