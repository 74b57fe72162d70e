"""`oic ir`, `oic ops`, `oic inspect`: what they show; and the command as a process."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oic as package
from cli.samples import AVERAGE, Oic
from oic.cli.main import MEANT, main
from oic.cli.text import in_color, in_columns
from oic.ir.text_parse import parse_module
from oic.model.inspect import describe
from oic.model.oinf_write import write_oinf
from oic.passes.pipeline import PIPELINE

COMMAND = [sys.executable, "-m", "oic"]
SOURCE_ROOT = str(Path(package.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": SOURCE_ROOT}
NAMES = [step.name for step in PIPELINE]


# ---------------------------------------------------------------- ir


@pytest.mark.parametrize("stage", ["graph", "indexed", "planned"])
def test_stages(oic: Oic, stage: str) -> None:
    done = oic("ir", "average.oi", "--stage", stage, "--verify")
    assert done.status == 0 and f'stage="{stage}"' in done.out.splitlines()[0]
    assert ("cache." in done.out) == (stage == "graph")
    assert (" in output" in done.out) == (stage == "planned")
    assert parse_module(done.out).stage == stage
    assert oic("ir", "average.oi").out == oic("ir", "average.oi", "--stage", "planned").out


def test_after_and_passes(oic: Oic) -> None:
    for name in NAMES:
        assert oic("ir", "average.oi", "--after", name).status == 0
    lowered = oic("ir", "average.oi", "--after", "lower-cache").out
    assert 'stage="indexed"' in lowered
    assert oic("ir", "average.oi", "--passes", ",".join(NAMES)).out == oic("ir", "average.oi").out
    assert (
        oic("ir", "average.oi", "--passes", "").out
        == oic("ir", "average.oi", "--stage", "graph").out
    )
    assert oic("ir", "average.oi", "--passes", "fold, cse", "--after", "fold").status == 0


@pytest.mark.parametrize("option", [("--after", "lower-cash"), ("--passes", "fold,lower-cash")])
def test_an_unknown_pass(oic: Oic, option: tuple[str, str]) -> None:
    done = oic("ir", "average.oi", *option)
    assert done.status == 1 and "error[unknown-pass]" in done.err and "'lower-cache'?" in done.err
    assert oic("ir", "average.oi", "--passes", "fold", "--after", "cse").status == 1


def test_changed(oic: Oic) -> None:
    out = oic("ir", "average.oi", "--changed").out
    named = [
        line.removeprefix("# after ") for line in out.splitlines() if line.startswith("# after")
    ]
    assert named and named == [n for n in NAMES if n in named] and "lower-cache" in named
    assert out.startswith('module "average" {stage="graph"')
    assert oic("ir", "average.oi", "--changed", "--stage", "graph").out.count("module ") == 1


def test_mlir_and_json(oic: Oic) -> None:
    assert '"oic.sub"(%' in oic("ir", "average.oi", "--mlir", "--stage", "graph").out
    (one,) = oic("ir", "average.oi", "--json").json
    assert one["after"] == NAMES[-1] and one["stage"] == "planned"
    assert one["text"].rstrip() == oic("ir", "average.oi").out.rstrip()
    many = oic("ir", "average.oi", "--json", "--changed").json
    assert many[0]["after"] is None and len(many) > 3


def test_list(oic: Oic) -> None:
    rows = oic("ir", "--list").out.splitlines()
    assert [row.split()[0] for row in rows] == NAMES
    assert oic("ir", "average.oi", "--list").out.splitlines() == rows


def test_no_reuse(oic: Oic) -> None:
    assert oic("ir", "average.oi", "--no-reuse").status == 0
    assert oic("build", "average.oi", "--no-reuse", "--no-compile").status == 0


# ---------------------------------------------------------------- ops


def test_ops(oic: Oic) -> None:
    rows = oic("ops").out.splitlines()
    facts = oic("ops", "--json").json
    assert [row.split()[0] for row in rows] == sorted(facts)
    assert {"matmul", "attn", "relu", "rope"} <= set(facts)
    text = oic("ops", "relu").out
    assert text.startswith("op relu(x, alpha=0") and "tested with" in text
    one = oic("ops", "relu", "--json").json
    assert one == facts["relu"] and one["operands"] == ["x"] and "alpha" in one["settings"]


def test_every_operator_is_described(oic: Oic) -> None:
    for name, facts in oic("ops", "--json").json.items():
        assert facts["description"], name
        assert oic("ops", name).status == 0


def test_an_unknown_operator(oic: Oic) -> None:
    done = oic("ops", "matmull")
    assert done.status == 1 and "error[unknown-op]" in done.err and "'matmul'?" in done.err
    assert (
        oic("ops", "matmull", "--json").json["diagnostics"][0]["hint"] == "did you mean 'matmul'?"
    )
    assert oic("ops", "cache.read").status == 1


# ---------------------------------------------------------------- inspect


def _models() -> list[str]:
    """The same tensor in every format that can be written here."""
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez("m.npz", w=w)
    write_oinf("m.oinf", package.Model(tensors={"w": w}, sizevars={"D": 3}, metadata={"leak": 0.5}))
    header = json.dumps({"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    Path("m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + w.tobytes())
    Path("hf").mkdir()
    Path("hf/config.json").write_text('{"hidden_size": 3, "name": "tiny"}')
    Path("hf/model.safetensors").write_bytes(Path("m.safetensors").read_bytes())
    return ["m.npz", "m.oinf", "m.safetensors", "hf"]


def test_inspect(oic: Oic) -> None:
    for name in _models():
        done = oic("inspect", name)
        assert done.status == 0 and "[2, 3]" in done.out and "f32" in done.out, done.err
        (tensor,) = oic("inspect", name, "--json").json["tensors"]
        assert tensor["name"] == "w" and tensor["shape"] == [2, 3] and tensor["bytes"] == 24
        (tensor,) = oic("inspect", name, "--json", "--stats").json["tensors"]
        assert (tensor["min"], tensor["max"], tensor["mean"]) == (0, 5, 2.5)
    assert oic("inspect", "m.oinf", "--json").json["sizevars"] == {"D": 3}
    assert "leak" in oic("inspect", "m.oinf").out
    assert oic("inspect", "hf", "--json").json["metadata"]["name"] == "tiny"


def test_inspect_gguf(oic: Oic) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter("m.gguf", "test")
    writer.add_tensor("w", np.ones((2, 3), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    done = oic("inspect", "m.gguf")
    assert done.status == 0 and "[2, 3]" in done.out, done.err


def test_inspect_numbers_that_json_does_not_have(oic: Oic) -> None:
    np.savez("nan.npz", w=np.array([np.nan, np.inf], np.float32))
    (tensor,) = oic("inspect", "nan.npz", "--json", "--stats").json["tensors"]
    assert tensor["mean"] == "nan"


@pytest.mark.parametrize("name", ["nope.npz", "nope", "average.oi", "x.npy"])
def test_inspect_refuses(oic: Oic, name: str) -> None:
    done = oic("inspect", name)
    assert done.status == 1 and done.out == "" and done.err.startswith("error[model-")
    assert oic("inspect", name, "--json").json["diagnostics"]


# ---------------------------------------------------------------- as a process


def test_version(oic: Oic) -> None:
    done = subprocess.run([*COMMAND, "--version"], env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"oic {package.__version__}\n")


def test_a_reader_that_leaves(oic: Oic) -> None:
    """`oic ops | head -1` ends in peace."""
    process = subprocess.Popen(
        [*COMMAND, "ops", "--json"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    error = process.stderr.read()
    assert (process.wait(), error) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments",
    [["ops"], ["ops", "--json"], ["check", "average.oi"], ["--help"], ["check", "-h"], ["--version"], ["ir", "--list"]],
    ids=" ".join,
)
def test_a_full_disk(oic: Oic, arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1 and done.stderr.startswith("error[system]: standard output: ")


def test_checking_needs_no_backend(oic: Oic) -> None:
    """What `oic check` does not use, it does not import; `oic --version` imports next to nothing."""
    heavy = ("oic.library", "oic.reference", "oic.passes", "oic.compare", "jinja2", "cffi", "rich")
    program = "import sys; from oic.cli import main; main({!r}, standalone_mode=False); print(sorted(sys.modules))"
    for arguments, unwanted in (
        (["check", "average.oi"], (*heavy, "oic.session.executor", "oic.session.synthesizer")),
        (["--version"], (*heavy, "numpy", "lark", "oic.driver", "oic.operators", "oic.check")),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program.format(arguments)],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        last = done.stdout.splitlines()[-1]
        loaded = set(ast.literal_eval(last)) if last.startswith("[") else set()
        assert not [
            m for m in loaded if m in unwanted or m.startswith(tuple(u + "." for u in unwanted))
        ]


def test_explain_names_the_entries_where_there_are_several(oic: Oic) -> None:
    text = "dynamic { x: f32[2]; } volatile { y: f32[2]; } block entry { op neg(x) >> y; }"
    Path("one.oi").write_text(text)
    Path("two.oi").write_text(f"{text} block more @entry {{ op abs(x) >> y; }}")
    one = oic("explain", "one.oi").out
    assert "entry '" not in one and "values, 0 stores; 0 copies of at most 0 bytes" in one
    Path("part.oi").write_text("dynamic { x: f32[4]; } volatile { y: f32[2]; }"
                               " block entry { op slice(x, axis=0, start=0, end=2) >> y; }")  # fmt: skip
    assert "; 1 copy of at most 8 bytes" in oic("explain", "part.oi").out
    parts = oic("explain", "two.oi").out.split("entry 'more'")
    assert parts[0].startswith("entry 'entry'") and "op neg" in parts[0] and "op abs" in parts[1]


def test_explain_tells_of_an_error(oic: Oic) -> None:
    """A slug or status in place of a graph prints its page; a file of that name is still a graph."""
    told = oic("explain", "table-rank")
    assert told.status == 0 and "as many indices as are declared" in told.out
    assert oic("explain", "OIC_ERR_STATE").out.startswith("OIC_ERR_STATE\n")
    assert oic("explain", "error[table-rank]", "--json").json["programs"].keys() == {"wrong", "cured"}
    unknown = oic("explain", "tabel-rank")
    assert unknown.status == 1 and "did you mean 'table-rank'?" in unknown.err
    Path("syntax").write_text(AVERAGE)
    assert "values" in oic("explain", "syntax").out
    assert "source-open" in oic("explain", "nosuch.oi").err


@pytest.mark.parametrize(
    ("choice", "environment", "terminal", "colored"),
    [
        ("auto", {}, True, True), ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False), ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False), ("always", {"NO_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True), ("auto", {"CLICOLOR_FORCE": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "0"}, False, False), ("auto", {"CLICOLOR": "0"}, True, False),
        ("auto", {"TERM": "dumb"}, True, False), ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)  # fmt: skip
def test_color(
    choice: str, environment: dict[str, str], terminal: bool, colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert in_color(choice, terminal) == colored


def test_the_environment_decides_on_color(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[31;1merror" in oic("check", "nosuch.oi").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in oic("check", "nosuch.oi").err


def test_commands_of_other_tools(oic: Oic) -> None:
    assert "no formatter" in oic("fmt", "average.oi").err and "fit" not in oic("fmt").err
    assert "'oic build'" in oic("compile").err and oic("compile").status == 2
    assert not set(MEANT) & set(main.commands)


def test_summaries_are_whole(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    summaries = oic("--help").out.partition("Commands:")[2]
    assert "build" in summaries and "..." not in summaries and "…" not in summaries


@pytest.mark.skipif(os.name != "posix", reason="streams are closed by a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_reason_to_stop(closed: str, folder: Path) -> None:
    (folder / "g.oi").write_text("volatile { y: f32; } block entry { return; }")
    for arguments, status in (("check g.oi", 0), ("check none.oi", 1), ("ops neg", 0), ("check g.oi --json", 0)):
        call = ["sh", "-c", f'exec "$@" {arguments} {closed}', "sh", *COMMAND]
        done = subprocess.run(call, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert done.returncode == status and "Traceback" not in done.stderr, done.stderr


@pytest.mark.skipif(os.name != "posix", reason="streams are closed by a shell")
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", "<&- >&-", "<&- 2>&-"])
def test_no_file_gets_the_number_of_a_closed_stream(closed: str, folder: Path) -> None:
    """What libraries and other processes write to 1 and 2 would be in it."""
    code = "from oic.cli import options; options._prepare_streams(); f = open('f', 'w'); f.write(str(f.fileno()))"
    call = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
    subprocess.run(call, cwd=folder, env=ENVIRONMENT, check=True)
    assert int((folder / "f").read_text()) > 2


def test_who_reads_a_file_says_why_it_cannot_be(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command asks beforehand, whose answer would be one of usage, and no JSON."""
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert oic("check", "average.oi", "--model", "slow.npz").status == 0
    assert oic("inspect", "slow.npz").status == 0
    for command in ("import", "generate", "verify", "quantize"):
        more = {"import": ["-o", "out"], "generate": ["--ids", "1"], "verify": ["--against", "ids.json"]}.get(command, [])
        refused = oic(command, "slow.npz", *more, "--json")
        assert (refused.status, json.loads(refused.out)["diagnostics"][0]["slug"]) == (1, "import-family")


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_names_of_files_that_are_no_text(folder: Path) -> None:
    """Read, written to, loaded from and named in messages."""
    text = "dynamic { x: f32; } volatile { y: f32; } block entry { op neg(x) >> y; return; }"
    (folder / "g.oi").write_text("graph g { " + text + " }")
    odd = os.fsdecode(b"bad\xff")
    (folder / f"{odd}.oi").write_text("graph h { " + text + " }")
    for arguments, status, said in (
        (["build", f"{odd}.oi", "-o", odd], 0, "h"),
        (["build", f"{odd}.oi", "--json"], 0, "h"),
        (["run", f"{odd}.oi", "--input", "x=1"], 0, "-1"),
        (["run", "g.oi", "--input", f"x={odd}.npy"], 1, "input-file"),
        (["check", f"no{odd}.oi"], 1, "source-open"),
        (["check", "g.oi", "--model", f"{odd}.oinf"], 1, "model-open"),
        (["inspect", f"{odd}.npz"], 1, "model-open"),
        (["build", "g.oi", "-o", f"{odd}.oi"], 1, "output-folder"),
    ):
        done = subprocess.run([*COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
        shown = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert done.returncode == status and said in shown and "Traceback" not in shown, shown


@pytest.mark.parametrize(
    ("name", "what"),
    [("m.onnx", "an ONNX model"), ("m.tflite", "a TensorFlow Lite model"), ("m.pt", "PyTorch's pickle")],
)
def test_files_of_other_programs(oic: Oic, name: str, what: str) -> None:
    """Wherever they are given, it is said what they are and what is read instead."""
    Path(name).write_bytes(b"\x08\x07\x12\xff\xfe")
    checked, given = oic("check", name), oic("check", "average.oi", "--model", name)
    assert f"{name} is {what}, not a graph" in checked.err and ".oi file" in checked.err
    assert f"{name}: this is {what}, which is not read" in given.err
    assert all("save its weights" in shown.err and shown.status == 1 for shown in (checked, given))
    assert "--model slow.npz" in oic("check", "slow.npz").err


def test_a_folder_without_a_configuration(oic: Oic) -> None:
    Path("weights").mkdir()
    np.savez("weights/a.npz", **{"one": np.ones(2, np.float32)})
    np.savez("weights/b.npz", **{"two": np.ones(2, np.float32)})
    shown = oic("inspect", "weights")
    assert shown.status == 0 and "one" in shown.out and "weights/b.npz: 1 tensors" in shown.out
    assert [m["name"] for m in oic("inspect", "weights", "--json").json] == ["weights/a.npz", "weights/b.npz"]
    Path("empty").mkdir()
    assert "config.json" in oic("inspect", "empty").err


def test_narrow_tables(folder: Path) -> None:
    np.savez("long.npz", **{"model.layers.0.self_attn.q_proj.weight": np.ones((2, 3), np.float32)})
    shown = describe(package.Model.open("long.npz"), stats=True, width=80)
    assert max(map(len, shown.splitlines())) <= 80
    assert "\n  model.layers.0.self_attn.q_proj.weight\n" in shown


def test_lines_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["    name " + "word " * 30, "short"]
    assert in_columns(lines) == "\n".join(lines)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "50")
    made = in_columns(lines).splitlines()
    assert max(map(len, made)) <= 50 and made[0].startswith("    name word") and made[-1] == "short"
    assert all(line.endswith("word") and line.startswith(" " * 12) for line in made[1:-1])
