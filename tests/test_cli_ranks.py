"""`ptokit ranks`: the table, the sentences, charts, traces, JSON, and mistakes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ptokit as pto
from ptokit.cli import group
from ptokit.cli.ranks import counts_of, link_of, tile_of
from ptokit.comm.prices.pricing import asked
from ptokit.errors import PtoError
from ptokit.report.chart import Axis, Line, letters, svg

SVG = "{http://www.w3.org/2000/svg}"


def ranks(*words: str) -> Result:
    return CliRunner().invoke(group, ["ranks", *words], env={"COLUMNS": "200", "NO_COLOR": "1"})


def told(*words: str) -> dict[str, object]:
    done = ranks(*words, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert isinstance(found, dict)
    return found


def test_the_table_has_a_row_for_each_number_and_a_column_for_each_way() -> None:
    done = ranks("--ranks", "8..64", "--topology", "both")
    assert done.exit_code == 0
    names = ("single flat", "single tree", "pingpong flat", "pingpong tree", "ccu flat")
    heading = next(line for line in done.output.splitlines() if "single flat" in line)
    assert [word.strip() for word in re.split("[│|]", heading)[1:-1]] == ["ranks", *names]
    rows = [re.split("[│|]", line)[1:-1] for line in done.output.splitlines() if re.match(r"[│|] +\d", line)]
    assert [row[0].strip() for row in rows] == ["8", "16", "32", "64"]
    assert [row[5].strip() == "-" for row in rows] == [False, False, True, True]
    for name in names:
        assert f"- {name}: On " in done.output
    assert "single: the tree does not pay here" in done.output
    assert "A model, no measurement" in done.output


def test_the_json_is_what_python_gives() -> None:
    words = ("--ranks", "2,3,5", "--op", "tgather", "--rows", "20", "--width", "10", "--dtype", "int8", "--tile", "4x8")
    more = ("--target", "a2a3", "--link", "latency=1,bandwidth=3,root=9", "--topology", "both", "--variant", "single")
    found = pto.comm.price(
        "tgather",
        ranks=[2, 3, 5],
        rows=20,
        width=10,
        dtype="int8",
        tile=(4, 8),
        target="a2a3",
        link={"latency": 1, "bandwidth": 3, "root": 9},
        topology="both",
        variant="single",
    )
    assert told(*words, *more) == json.loads(json.dumps(found.as_dict()))


def test_a_table_is_routed() -> None:
    words = ("--op", "scatter", "--ranks", "1,16", "--rows", "4096", "--table-rows", "100000", "--skew", "zipf:1.2")
    found = pto.comm.price("scatter", ranks=[1, 16], rows=4096, table_rows=100_000, skew="zipf:1.2")
    assert told(*words) == json.loads(json.dumps(found.as_dict()))
    done = ranks(*words)
    assert "table of 100,000 rows, zipf:1.2" in done.output
    assert re.search(r"[│|] +16 [│|] .* [│|] +0 [│|]", done.output)


def test_numbers_come_from_files(tmp_path: Path) -> None:
    link, target = tmp_path / "link.toml", tmp_path / "target.toml"
    link.write_text("[link]\nlatency_us = 50\n")
    target.write_text("[bandwidth.store]\npeak_gib_s = 1\n")
    base = ("--ranks", "4", "--variant", "single")
    plain, far, slow = (told(*base, *more) for more in ((), ("--link", str(link)), ("--parameters", str(target))))
    assert far["curves"] != plain["curves"] != slow["curves"]
    assert far == told(*base, "--link", "latency=50")


# Charts


def test_the_picture_has_a_line_for_each_way(tmp_path: Path) -> None:
    file = tmp_path / "ranks.svg"
    done = ranks("--ranks", "2..1024", "--topology", "both", "--chart", str(file))
    assert f"Wrote {file}" in done.output
    picture = ET.fromstring(file.read_text())
    assert len(picture.findall(f"{SVG}polyline")) == 5
    assert len(picture.findall(f"{SVG}circle")) == 4 * 10 + 4
    words = [text.text for text in picture.findall(f"{SVG}text")]
    for name in ("single flat", "pingpong tree", "ccu flat", "ranks", "1,024", "1 ms"):
        assert name in words
    assert [one.name for one in tmp_path.iterdir()] == ["ranks.svg"]


def test_a_picture_is_drawn_to_scale() -> None:
    picture = ET.fromstring(svg("<t>", "x", [Line("a&b", ((1, 1.0), (10, 10.0), (1000, 100.0)))], str))
    places = [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in picture.findall(f"{SVG}circle")]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert (x1 - x0) * 2 == pytest.approx(x2 - x1, abs=0.3)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y0 > y2


def test_letters_stand_where_the_points_are() -> None:
    drawn = letters("x", [Line("up", ((1, 1.0), (4, 4.0), (16, 16.0))), Line("on", ((1, 1.0), (16, 1.0)))], str, 9, 5)
    assert [line.partition("|")[2] for line in drawn[:5]] == ["        a", "", "    a", "", "*       b"]
    assert drawn[-2:] == ["  a up", "  b on"]


def test_one_number_of_ranks_has_a_table_and_no_chart(tmp_path: Path) -> None:
    assert "  a single flat" not in ranks("--ranks", "8").output
    assert "  a single flat" in ranks("--ranks", "8,16").output
    file = tmp_path / "one.svg"
    assert ranks("--ranks", "8", "--chart", str(file)).exit_code == 0
    assert len(ET.fromstring(file.read_text()).findall(f"{SVG}circle")) == 3
    assert Axis.over([7.0], 100).at(7.0) == 50


# Traces


@pytest.mark.parametrize("op", ["tscatter", "tgather"])
@pytest.mark.parametrize("way", [("single", "flat"), ("pingpong", "flat"), ("pingpong", "tree"), ("ccu", "flat")])
def test_a_trace_has_a_process_for_each_rank_and_arrows_between_them(
    tmp_path: Path, op: str, way: tuple[str, str]
) -> None:
    file = tmp_path / "ranks.json"
    words = ("--op", op, "--ranks", "4", "--variant", way[0], "--topology", way[1], "--trace", str(file))
    done = ranks(*words)
    assert done.exit_code == 0, done.output
    assert f"Wrote {file}; open it in https://ui.perfetto.dev" in done.output
    read = json.loads(file.read_text())
    made = read["traceEvents"]
    assert [one["args"]["name"] for one in made if one["name"] == "process_name"] == [
        "rank 0, root",
        "rank 1",
        "rank 2",
        "rank 3",
    ]
    assert (read["otherData"]["variant"], read["otherData"]["ranks"], read["otherData"]["op"]) == (way[0], 4, op)
    ends = {one["id"]: one["pid"] for one in made if one["ph"] == "f"}
    pairs = {(one["pid"], ends[one["id"]]) for one in made if one["ph"] == "s"}
    others = {(1, 2), (1, 3), (1, 4)} if way[1] == "flat" else {(1, 2), (1, 3), (3, 4)}
    assert pairs == (others if op == "tscatter" else {(to, by) for by, to in others})
    last = max(one["ts"] + one["dur"] for one in made if one["ph"] == "X")
    price = pto.comm.price(op, ranks=[4], variant=way[0], topology=way[1]).curves[0].prices[0]
    assert last * 1e-6 == pytest.approx(price.seconds, rel=1e-2)


def test_the_json_names_the_files(tmp_path: Path) -> None:
    chart, trace = tmp_path / "a.svg", tmp_path / "b.json"
    found = told("--ranks", "4", "--variant", "single", "--chart", str(chart), "--trace", str(trace))
    assert (found["chart"], found["trace"]) == (str(chart), str(trace))
    assert chart.exists()
    assert trace.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ranks", "2,4", "--variant", "single"), "one way on one number of ranks"),
        (("--ranks", "4"), "one way on one number of ranks"),
        (("--ranks", "4", "--variant", "single", "--topology", "both"), "one way on one number of ranks"),
        (("--ranks", "65", "--variant", "single"), "at most 64 are drawn"),
        (("--ranks", "17", "--variant", "ccu"), "at most 16 ranks"),
        (("--ranks", "4", "--variant", "ccu", "--target", "a2a3"), "a2a3 has no CCU"),
        (("--ranks", "64", "--rows", "10000", "--variant", "single"), "chunks is too large"),
        (("--ranks", "4", "--op", "gather"), "no schedule of chunks"),
    ],
)
def test_what_cannot_be_drawn_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    file = tmp_path / "no.json"
    done = ranks(*words, "--trace", str(file))
    assert isinstance(done.exception, PtoError)
    assert said in str(done.exception)
    assert not file.exists()


# What was written


def test_ranges_double_and_end_where_they_say() -> None:
    assert counts_of("8..64") == [8, 16, 32, 64]
    assert counts_of("3..20") == [3, 6, 12, 20]
    assert counts_of("5, 2,3") == [2, 3, 5]
    assert counts_of("4..4") == [4]
    assert tile_of("16x64") == (16, 64)
    assert link_of("latency=2, ccu.most_ranks=64") == {"latency": 2.0, "ccu": {"most_ranks": 64}}
    assert link_of(None) is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ranks", "8...64"), "'8...64' is no number of ranks"),
        (("--ranks", ""), "'' is no number of ranks"),
        (("--ranks", "64..8"), "64..8 is empty"),
        (("--ranks", "0..8"), "0..8 is empty"),
        (("--ranks", "-3"), "'-3' is no number of ranks"),
        (("--ranks", "1..99999999999"), "are too many"),
        (("--tile", "16"), "rows and columns are wanted"),
        (("--tile", "0x4"), "tile[0] is 0"),
        (("--link", "latency"), "neither a file nor NAME=NUMBER"),
        (("--link", "latency=fast"), "no NAME=NUMBER"),
        (("--link", "latency=-2"), "a number above zero is wanted"),
        (("--link", "latncy=2"), "Did you mean 'latency'"),
        (("--link", "ccu.gate=2"), "Did you mean 'gate_us'"),
        (("--variant", "dual"), "variant='dual'"),
        (("--op", "scater"), "Did you mean 'scatter'"),
        (("--skew", "normal", "--op", "gather"), "uniform, zipf or zipf:1.2"),
        (("--variant", "ccu", "--target", "a2a3", "--chart", "x.svg"), "nothing to draw"),
        (("--ranks", "2", "--chart", "/nowhere/x.svg"), "/nowhere does not exist"),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], said: str) -> None:
    done = ranks(*words)
    assert isinstance(done.exception, PtoError), done.output
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)


def test_nothing_priced_is_exit_code_1() -> None:
    done = ranks("--variant", "ccu", "--target", "a2a3")
    assert done.exit_code == 1
    assert "a2a3 has no CCU" in done.output


def test_from_the_shell_there_is_no_traceback_and_no_colour() -> None:
    env = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "ptokit", "ranks", "--ranks"]
    good, bad = (
        subprocess.run([*words, text], capture_output=True, text=True, check=False, env=env) for text in ("2..8", "two")
    )
    assert good.returncode == 0
    assert "\x1b[" not in good.stdout
    assert "?" not in good.stdout
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "ptokit: --ranks two: 'two' is no number of ranks; write 8..16384, or 2,3,5\n"


def test_the_slice_of_the_json_is_that_of_the_work() -> None:
    described = told("--ranks", "2", "--rows", "5", "--width", "7", "--dtype", "float16")["asked"]
    assert isinstance(described, dict)
    assert described["slice_bytes"] == asked(rows=5, width=7, dtype="float16").slice_bytes == 70
