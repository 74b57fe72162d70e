"""Numbers that the compiler and the headers of the runtime must both know."""

from __future__ import annotations

import re

import pytest

from oic import api
from oic.codegen import template_data, weights
from oic.ir import encodings
from oic.ir.quantized import GROUP, ROWS, STREAM
from oic.kernels.targets import Costs
from oic.memory import saved
from oic.operators import attention, conv, matmul, quant, quantized, reduce, work
from oic.resources import runtime_dir

SHARED = {
    "OIC_ATTENTION_KEYS": attention.KEYS,
    "OIC_ATTENTION_PACKED": attention.PACKED,
    "OIC_ATTENTION_ROWS": attention.ROWS,
    "OIC_ATTENTION_SHARED": attention.SHARED,
    "OIC_ATTENTION_SPAN": attention.SPAN,
    "OIC_ATTENTION_STRIPS": attention.STRIPS,
    "OIC_ATTENTION_SPANS": attention.BESIDE,
    "OIC_ATTENTION_TOGETHER": attention.TOGETHER,
    "OIC_CHUNK": conv.CHUNK,
    "OIC_COLUMNS_UNIT": work.COLUMNS,
    "OIC_CONV_OUTPUTS": conv.OUTPUTS,
    "OIC_CONV_WHOLE": conv.WHOLE,
    "OIC_EXTREME_LEAST": reduce.SPAN,
    "OIC_FOLDED": attention.FOLDED,
    "OIC_GROUP": GROUP,
    "OIC_IMAGE_VERSION": weights.VERSION,
    "OIC_LANES": encodings.ROWS,
    "OIC_LINEAR_PART": matmul.PART,
    "OIC_LINEAR_RUN": matmul.RUN,
    "OIC_POOL_MOST": api.MOST_THREADS,
    "OIC_QUANTIZED_BYTES": quantized.GROUP_BYTES,
    "OIC_ROWS_MOST": template_data.TILE_ROWS,
    "OIC_SAVED_HEAD": saved.HEAD,
    "OIC_SAVED_RUN": saved.RUN,
    "OIC_SAVED_VERSION": saved.VERSION,
    "OIC_SCALED_UNIT": quant.UNIT,
    "OIC_STREAM_PANELS": STREAM // ROWS,
    "OIC_TILE_PANELS": conv.SPARE // conv.LANES,
    "OIC_WORK_ELEMENT": work.ELEMENTWISE,
    "OIC_WORK_LEAST": Costs().thread,
}


@pytest.mark.parametrize("name", SHARED)
def test_both_say_the_same(name: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in runtime_dir().rglob("*.h")]
    found = {value for text in texts for value in re.findall(rf"^#define {name} +(\d+)u?\b", text, re.MULTILINE)}
    assert found == {str(SHARED[name])}


def test_there_is_room_for_the_rows_of_every_instruction_set() -> None:
    text = (runtime_dir() / "simd" / "words.h").read_text(encoding="utf-8")
    assert max(map(int, re.findall(r"#define OIC_WORD_ROWS (\d+)", text))) == conv.WORD_ROWS
