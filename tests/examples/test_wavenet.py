"""A stack of dilated convolutions beside its reference: blocks of any size give the same bits."""

from __future__ import annotations

import runpy

import numpy as np

import oic
from paths import ROOT, models_dir, needs_models


@needs_models
def test_samples_are_those_of_the_reference_in_blocks_of_any_size() -> None:
    script, models = runpy.run_path(str(ROOT / "examples" / "wavenet" / "run.py")), models_dir()
    assert models is not None
    samples, wanted = (np.load(models / "nam-wavenet" / "reference" / f"{n}_0.npy").reshape(-1)[:500] for n in "xy")
    arrays = script["arrays"]()
    maker = oic.Synthesizer(oic.parse(script["graph"](arrays), name="wavenet"), script["weights"](arrays)).build()
    with maker.make_executor() as executor:
        found = script["amplified"](executor, samples)
        assert np.abs(found - wanted).max() <= script["BOUND"]
        for block in (1, 7):
            assert script["amplified"](executor, samples, block).tobytes() == found.tobytes()
