"""`tfm plot`: which runs it finds, what it writes and prints, and what it says of runs that are not complete."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from PIL import Image

from transformer_cli.extensions.lessons.commands.plot import plot_command
from transformer_cli.process.errors import MissingInputError, UsageError

from ....checkpoint.snapshots import saved
from ..drawing.recorded_runs import record, record_run

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
# What a person does on the page; each answer is a line NAME=VALUE.
CLICKS = """
const say = [];
addEventListener("error", (event) => say.push(`error=${event.message}`));
setTimeout(() => {
  const paths = [...document.querySelectorAll('figure[data-metric=bleu] g[id^="curve-bleu"] path')];
  say.push(`lines=${paths.filter((one) => one.getTotalLength() > 10).length}`);
  const colors = ["curve-bleu-0-validation", "curve-bleu-1-validation"].map((id) => getComputedStyle(document.querySelector(`#${id} path`)).stroke);
  say.push(`colours=${new Set(colors).size}`);
  const [figure] = document.querySelectorAll("figure[data-metric=bleu]");
  const svg = figure.querySelector("svg");
  const frame = svg.getBoundingClientRect();
  svg.dispatchEvent(new PointerEvent("pointermove", { clientX: frame.right - 20, clientY: frame.top + 50 }));
  say.push(`values=${figure.querySelector("figcaption").textContent}`);
  document.querySelectorAll("[data-run]")[1].click();
  const isHidden = (id) => document.getElementById(id).style.display === "none";
  say.push(`hidden=${isHidden("curve-bleu-1-validation")},${isHidden("curve-bleu-0-validation")}`);
  say.push(`loaded=${performance.getEntriesByType("resource").length}`);
  const answer = document.createElement("pre");
  answer.id = "answer";
  answer.textContent = say.join("\\n");
  document.body.append(answer);
}, 300);
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ONE_PANEL = {"metrics": ["loss"]}  # a picture of all curves takes four times as long


def make(*names: str, output: str | None = "curves.png", **options: object) -> Path:
    path = None if output is None else Path(output)
    plot_command([*names], path, **options)  # type: ignore[arg-type]
    return path or Path()


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, float]]:
    found = json.loads(capsys.readouterr().out)
    return {f"{row['metric']} {row['run']} {row['of']}": row for row in found["values"]}


@pytest.mark.long
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_has_the_background_of_its_theme(theme: str) -> None:
    record_run("a")
    with Image.open(make("a", theme=theme, **ONE_PANEL)) as picture:
        brightness = picture.convert("L").getpixel((2, 2))
    assert isinstance(brightness, int)
    assert (brightness > 200) == (theme == "light")


@pytest.mark.long
def test_svg_files_of_equal_runs_are_equal() -> None:
    record_run("a")
    first, second = (make("a", output=name, **ONE_PANEL).read_bytes() for name in ("1.svg", "2.svg"))
    assert first == second
    assert b"<svg" in first


def test_the_values_are_those_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    folder = record_run("a")
    record(folder, 50, 7.5)
    make("a", output=None, as_json=True, metrics=["loss", "bleu"])
    rows = printed(capsys)
    assert rows["loss a training"] == {
        "metric": "loss",
        "run": "a",
        "of": "training",
        "final": 7.5,
        "final_step": 50,
        "best": 6.0,
        "best_step": 40,
    }
    assert rows["bleu a validation"]["final"] == 40.0
    assert set(rows) == {"loss a training", "loss a validation", "bleu a validation"}


def test_the_table_has_a_row_for_each_curve(capsys: pytest.CaptureFixture[str]) -> None:
    record_run("a")
    plot_command(["a"], metrics=["bleu", "learning_rate"], table=True)
    heads, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert heads == ["metric", "run", "of", "final", "at", "step", "best", "at", "step"]
    assert rows == [
        ["bleu", "a", "validation", "40", "40", "40", "40"],
        ["learning_rate", "a", "training", "0.004", "40", "-", "-"],
    ]


def test_without_a_name_the_newest_run_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "new"):
        saved(record_run(name), 20)
    make(output=None, as_json=True)
    assert "bleu new validation" in printed(capsys)


def test_a_run_before_its_first_checkpoint_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    folder = record_run("young")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "step": 50, "loss"')  # a training is writing this line
    for names in ((), ("young",), ("runs/young",), (str(folder.resolve()),)):
        make(*names, output=None, as_json=True, metrics=["loss"])
        assert printed(capsys)["loss young training"]["final_step"] == 40


def test_a_run_named_twice_is_drawn_once_and_equal_names_show_their_paths(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = record_run("a")
    shutil.copytree(folder, "elsewhere/a")
    make("a", "runs/a", "elsewhere/a", output=None, as_json=True, metrics=["bleu"])
    assert list(printed(capsys)) == ["bleu runs/a validation", "bleu elsewhere/a validation"]


@pytest.mark.long
def test_a_run_without_validations_has_the_curves_of_its_training(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("runs/a").mkdir(parents=True)
    record(Path("runs/a"), 10, 3.0)
    make("a", as_json=True)
    assert [row["metric"] for row in printed(capsys).values()] == [
        "loss",
        "learning_rate",
        "gradient_norm",
        "target_tokens_per_second",
    ]


@pytest.mark.long
def test_a_run_that_has_recorded_nothing_is_left_out_or_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (record_run("empty") / "metrics.jsonl").write_text("")
    record_run("a")
    make("a", "empty", **ONE_PANEL)
    told = caplog.text
    assert "runs/empty: nothing is recorded yet; it is left out" in told
    with pytest.raises(MissingInputError, match=r"runs/empty: nothing is recorded in metrics\.jsonl"):
        make("empty")


@pytest.mark.long
def test_a_gap_is_told(caplog: pytest.LogCaptureFixture) -> None:
    record(record_run("a"), 50, float("nan"))
    make("a", **ONE_PANEL)
    told = caplog.text
    assert "a: training loss is not a finite number at 1 of 5 records, first at step 50" in told


@pytest.mark.parametrize(
    ("output", "options", "message"),
    [
        (None, {}, "say what to make"),
        (
            "curves.gif",
            {},
            r"curves\.gif: the ending of --output says what is written; \.gif is none of \.png, \.svg, \.pdf, \.html",
        ),
        ("curves", {}, "no ending is none of"),
        ("curves.png", {"metrics": ["blue"]}, "--metric blue: no run has recorded it"),
        ("curves.png", {"metrics": ["bleu"], "log": ["loss"]}, "--log loss: it is not drawn"),
    ],
)
def test_what_cannot_be_drawn_is_refused(output: str | None, options: dict[str, object], message: str) -> None:
    record_run("a")
    with pytest.raises(UsageError, match=message):
        make("a", output=output, **options)
    assert not Path(str(output)).exists()


@pytest.mark.parametrize("output", [None, "curves.gif", "curves.png"])
def test_a_run_that_is_not_there_is_named_before_what_else_is_missing(output: str | None) -> None:
    record_run("a")
    with pytest.raises(MissingInputError, match="nothing: no such run"):
        make("nothing", output=output)


@pytest.mark.long
def test_the_page_names_no_address_and_escapes_names() -> None:
    record_run("a<b>")
    page = make("a<b>", output="curves.html", **ONE_PANEL).read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|fetch\(|XMLHttp|WebSocket|\bsrc=|url\((?!#)", page)
    assert re.findall(r'href="(?!#)[^"]*"', page) == []
    assert page.count("</script>") == 2
    assert "<b>" not in page


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_shows_the_curves_of_the_page(tmp_path: Path) -> None:
    assert CHROMIUM is not None
    for name, slope in (("one", 1.0), ("two", 2.0)):
        record_run(name, slope=slope)
    file = make("one", "two", output="curves.html")
    page = file.read_text(encoding="utf-8")
    file.write_text(page.replace("</body>", f"<script>{CLICKS}</script></body>"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    address = file.resolve().as_uri()
    finished = subprocess.run(
        [CHROMIUM, *options, profile, "--virtual-time-budget=3000", "--dump-dom", address],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    match = re.search(r'<pre id="answer">(.*?)</pre>', finished.stdout, re.DOTALL)
    assert match is not None, finished.stdout[-2000:]
    answer = dict(line.split("=", 1) for line in unescape(match[1]).splitlines())
    assert int(answer.pop("lines")) >= 2
    assert answer == {
        "colours": "2",
        "values": "step: one 40 at 40; two 80 at 40",
        "hidden": "true,false",
        "loaded": "0",
    }


@pytest.mark.long
def test_a_pdf_is_drawn_into_a_folder_that_is_made() -> None:
    record_run("a")
    assert make("a", output="new/deep/curves.pdf", **ONE_PANEL).read_bytes().startswith(b"%PDF")
