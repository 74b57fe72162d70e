"""The original: a checkpoint's model in Hugging Face's transformers (an extra), computed in f32."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from oic.diagnostics import fail
from oic.verification.cases import Case

STATES = ("past_key_values", "cache", "cache_params")
"""What models call that which they hand from step to step: keys and values, or the state of a recurrent one."""


class Original:
    """A checkpoint's model; `OicError` `verify-library` where the library is missing or refuses the folder."""

    def __init__(self, folder: Path) -> None:
        try:
            self._torch: Any = import_module("torch")
            library: Any = import_module("transformers")
        except ImportError as error:
            message = f"the Python package '{error.name}' is not installed"
            hint = "pip install 'oic[verify]', or compare with a file: --against FILE.npz"
            raise fail("verify-library", message, hint=hint) from None
        library.logging.set_verbosity_error()
        library.logging.disable_progress_bar()
        try:
            config = library.AutoConfig.from_pretrained(folder, local_files_only=True)
            self.encodes = bool(getattr(config, "is_encoder_decoder", False))
            kind = library.AutoModelForSeq2SeqLM if self.encodes else library.AutoModelForCausalLM
            model = kind.from_pretrained(
                folder, local_files_only=True, attn_implementation="eager", dtype=self._torch.float32
            )  # fmt: skip
        except Exception as error:  # whatever the library raises
            message = f"transformers does not open '{folder}': {str(error).strip().splitlines()[0]}"
            raise fail("verify-library", message) from None
        self._model = model.eval()
        self._config = model.config
        self._settings = model.generation_config

    def _setting(self, name: str) -> Any:
        """What generation is told, else what the configuration says."""
        found = getattr(self._settings, name, None)
        return getattr(self._config, name, None) if found is None else found

    def case(self, prompt: Sequence[int], count: int) -> Case:
        """What it makes of a prompt, `count` new tokens at most: the likeliest each time, to the end token."""
        try:
            with self._torch.no_grad():
                return self._case(prompt, count)
        except (IndexError, ValueError, RuntimeError) as error:  # more tokens than positions, say
            message = f"transformers fails on a prompt of {len(prompt)} and {count} new tokens: {error}"
            raise fail("verify-library", message, hint="fewer or other tokens, or fewer new ones: -n") from None

    def _case(self, prompt: Sequence[int], count: int) -> Case:
        context: dict[str, Any] = {}
        name, start, forced = "input_ids", list(prompt), None
        if self.encodes:
            source = self._torch.tensor([start])
            encoder = self._model.get_encoder()(input_ids=source)
            context = {"encoder_outputs": encoder, "attention_mask": self._torch.ones_like(source)}
            name, start = "decoder_input_ids", [int(self._setting("decoder_start_token_id"))]
            forced = self._setting("forced_bos_token_id")
        chosen = self._greedy(context, name, start, count, [] if forced is None else [int(forced)])
        fed = [*start, *chosen[:-1]]
        rows = self._model(**context, **{name: self._torch.tensor([fed])}).logits[0]
        return Case(tuple(prompt) if self.encodes else None, tuple(fed), tuple(chosen), rows.numpy())

    def _greedy(
        self, context: dict[str, Any], name: str, fed: list[int], count: int, forced: Sequence[int]
    ) -> list[int]:
        """New tokens: the forced ones first, then the likeliest."""
        end = self._setting("eos_token_id")
        ends = set(end) if isinstance(end, list) else {end}
        past, found = dict[str, Any](), list[int]()
        while len(found) < count and not (found and found[-1] in ends):
            out = self._model(**context, **{name: self._torch.tensor([fed])}, **past, use_cache=True)
            past = {key: out[key] for key in STATES if key in out}
            fed = [*forced[len(found) : len(found) + 1]] or [int(np.argmax(out.logits[0, -1].numpy()))]
            found += fed
        return found
