"""Recording, in real kernels: what a cell does is on record, and the cell never notices."""

from __future__ import annotations

import ast
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel, Ran, eventually, texts

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """One kernel for the cases that leave it as it was."""
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    kernel.run("%load_ext ipymemory")
    yield kernel
    kernel.close()


def recorded(kernel: Kernel, source: str, **options: Any) -> tuple[Ran, dict[str, Any]]:
    """Run a cell; return what the client saw and what is on record."""
    ran = kernel.run(source, **options)
    return ran, kernel.recorded(source)


@pytest.mark.spec("L5", "L3")
def test_a_turn_holds_source_outputs_result_names_and_cell_id(shared: Kernel) -> None:
    source = "n = 41\nprint('hello')\nn + 1"
    ran, cell = recorded(shared, source, cell_id="abc-1")
    assert cell["lines"] == ["cell", "end", "outputs"]
    assert cell["cell_id"] == "abc-1"
    assert cell["status"] == "ok"
    assert cell["duration_ms"] >= 0
    assert cell["execution_count"] == ran.reply["execution_count"]
    assert [(o["kind"], o["text"]) for o in cell["outputs"]] == [
        ("stream", "hello\n"),
        ("result", "42"),
    ]
    assert cell["names"] == [{"name": "n", "type": "int"}]


@pytest.mark.spec("L2")
def test_a_client_sees_the_same_with_and_without(
    shared: Kernel, tmp_path: Path, new_kernel: Callable[..., Kernel]
) -> None:
    bare = new_kernel()
    cells = (
        "import sys; print('out'); print('err', file=sys.stderr); 7",
        "_",
        "from IPython.display import display, HTML; display(HTML('<b>x</b>')); display({'a': 1})",
        "raise ValueError('no')",
        "def broken(:",
        "!echo from the shell",
        "%%time\nx = 2",
        "sorted(set(k for k in globals() if 'memory' in k.lower()))",
        "sys.displayhook.__class__.__name__, sys.excepthook.__name__, type(sys.stdout).__name__",
        "import signal; signal.getsignal(signal.SIGINT).__name__",
    )
    for source in cells:
        ours, theirs = shared.run(source), bare.run(source)
        assert ours.kinds == theirs.kinds, source
        if "%%time" not in source and "Error" not in str(ours.reply.get("ename")):
            assert ours.text == theirs.text, source
        assert ours.reply["status"] == theirs.reply["status"]


def test_frames_are_told_by_shape_and_columns(shared: Kernel) -> None:
    source = (
        "import numpy as np\nimport pandas as pd\n"
        "df = pd.DataFrame({'a': range(1200), 'b': 0})\nx = np.ones((3, 4))"
    )
    _, cell = recorded(shared, source)
    assert cell["names"] == [
        {"name": "df", "type": "DataFrame", "shape": "1,200 x 2", "columns": ["a", "b"]},
        {"name": "x", "type": "ndarray", "shape": "3 x 4"},
    ]
    eventually(
        lambda: any(each.get("name") == "packages" for each in shared.lines()),
        "the packages are on record",
    )
    told = [each["packages"] for each in shared.lines() if each.get("name") == "packages"]
    assert set().union(*told) >= {"numpy", "pandas"}


def test_capture_time_and_shell(shared: Kernel) -> None:
    _, hidden = recorded(shared, "%%capture\nprint('hidden')")
    assert texts(hidden) == ""
    _, timed = recorded(shared, "%%time\nprint('timed')")
    assert "timed" in texts(timed)
    _, shell = recorded(shared, "!echo from the shell")
    assert "from the shell" in texts(shell)
    _, magic = recorded(shared, "%timeit -n1 -r1 print('t')")
    assert texts(magic).count("t\n") >= 1
    assert magic["lines"].count("cell") == 1


def test_an_async_cell(shared: Kernel) -> None:
    _, cell = recorded(shared, "import asyncio\nprint('a')\nawait asyncio.sleep(0.05)\nprint('b')")
    assert (cell["status"], texts(cell)) == ("ok", "a\nb\n")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def broken(:", "SyntaxError"),
        ("  x = 1\n y = 2", "IndentationError"),
        ("1 / 0", "ZeroDivisionError"),
        ("%no_such_magic_at_all x", "UsageError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("class Bad:\n    def __repr__(self): raise ValueError('repr')\nBad()", "ValueError"),
        ("class E(Exception):\n    def __str__(self): raise KeyError\nraise E", ""),
    ],
)
def test_errors(shared: Kernel, source: str, name: str) -> None:
    _, cell = recorded(shared, source)
    if name == "UsageError" and cell["status"] == "ok":
        # IPython tells of an unknown line magic on stderr and goes on.
        assert "not found" in texts(cell)
        return
    assert cell["status"] == "error"
    assert cell["error_name"] == name or not name
    if name in ("ZeroDivisionError", "ValueError"):
        assert cell["error"]["name"] == name
        assert name in cell["error"]["traceback"]
        assert "\x1b" not in cell["error"]["traceback"]


def test_an_interrupt(shared: Kernel) -> None:
    for source in ("import time\ntime.sleep(30)", "import asyncio\nawait asyncio.sleep(3)"):
        request = shared.send(source)
        eventually(
            lambda source=source: any(each.get("source") == source for each in shared.cells()),
            "the cell began",
        )
        time.sleep(0.3)
        shared.interrupt()
        shared.collect(request)
        assert shared.recorded(source)["status"] == "interrupted"


def test_what_is_no_turn(shared: Kernel) -> None:
    before = len(shared.cells())
    shared.run("")
    shared.run("   \n")
    shared.run("silent = 1", silent=True)
    shared.run("unstored = 1", store_history=False)
    shared.run("%memory status")
    assert "Engine" in shared.run("memory status").markdown
    shared.run("# a look\n%memory notes")
    shared.run("%load_ext ipymemory")
    recorded(shared, "'after'")
    assert len(shared.cells()) == before + 1


def test_a_nested_cell_is_part_of_the_one_that_runs_it(shared: Kernel) -> None:
    source = "get_ipython().run_cell('print(5)\\ninner = 1', store_history=True)\nprint('outer')"
    before = len(shared.cells())
    _, cell = recorded(shared, source)
    assert len(shared.cells()) == before + 1
    assert "5\n" in texts(cell)
    assert "outer" in texts(cell)
    assert cell["status"] == "ok"
    assert cell["lines"] == ["cell", "end", "outputs"]


def test_a_progress_bar_is_its_last_state(shared: Kernel) -> None:
    _, cell = recorded(shared, "for i in range(101):\n    print(f'\\r{i} %', end='', flush=True)")
    assert texts(cell) == "100 %"
    _, cell = recorded(
        shared,
        "from IPython.display import clear_output\nfor i in range(5):\n"
        "    clear_output(wait=True)\n    print('step', i)",
    )
    assert texts(cell) == "step 4\n"
    _, cell = recorded(
        shared,
        "h = display('first', display_id=True)\nfor i in range(3):\n    h.update(f'state {i}')",
    )
    assert texts(cell) == "'state 2'"


# What the allocator keeps of what was freed hangs on which thread was first: it gives it back.
RESIDENT = """
import ctypes, psutil
def resident():
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        pass
    return psutil.Process().memory_info().rss
"""


def test_a_hundred_megabytes_are_bounded_while_they_stream(
    kernel: Kernel, new_kernel: Callable[..., Kernel]
) -> None:
    source = "for i in range(100):\n    print('x' * 999_999)\nprint('the end')"
    grown = []
    # IPython 9 itself keeps every output of the process, so a kernel without us is the measure.
    for each in (kernel, new_kernel()):
        each.run(RESIDENT)
        # What is taken once, for the first long lines, is no growth.
        each.run(source.replace("100", "30"))
        before = int(each.run("resident()").text)
        each.run(source)
        grown.append(int(each.run("resident()").text) - before)
    cell = kernel.recorded(source)
    assert len(cell["outputs"]) == 1
    assert cell["outputs"][0]["truncated"] > 99_000_000
    assert len(texts(cell)) <= 4000
    assert texts(cell).endswith("the end\n")
    assert grown[0] - grown[1] < 20_000_000


def test_threads_and_late_output(shared: Kernel) -> None:
    source = (
        "import threading, time\n"
        "def work():\n    print('in time')\n    time.sleep(0.6)\n    print('too late')\n"
        "t = threading.Thread(target=work); t.start(); time.sleep(0.2)"
    )
    _, cell = recorded(shared, source)
    assert "in time" in texts(cell)
    eventually(
        lambda: any("late" in each for each in shared.cells()), "late output is on record", 10
    )
    late = [each for each in shared.cells() if "late" in each][-1]
    assert "too late" in "".join(each["text"] for each in late["late"])


@pytest.mark.spec("L7")
def test_secrets_do_not_reach_the_disk(shared: Kernel) -> None:
    key = "sk-ant-" + "api03-" + "Zx9" * 20
    password = "Tr0ub4dor" + "&3xyz"
    for source in (
        f"api_key = {key!r}\nprint('the key is', api_key)",
        # The kernel puts its own getpass into the module for each cell; this stands for it.
        f"%%private\nclass keyboard:\n    getpass = staticmethod(lambda: {password!r})",
        "pin = keyboard.getpass()",
        "print('typed', pin)",
        f"import os\nos.environ['DB_PASSWORD'] = {password[::-1]!r}\ndict(os.environ)",
        "%env DB_PASSWORD",
        "raise RuntimeError(f'no access with {api_key}')",
    ):
        shared.run(source)
    eventually(lambda: "api_key" in shared.notes(), "the notes are there")
    for path in shared.home.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for secret in (key, password, password[::-1]):
                assert secret.encode() not in data, path
    assert "typed [masked" in texts(shared.recorded("print('typed', pin)"))


@pytest.mark.spec("L7")
def test_what_is_typed_unseen_is_masked_whatever_becomes_of_it(shared: Kernel) -> None:
    typed = "Qx7!vortex" + "-Plum"
    shared.run("import getpass\nfirst = getpass.getpass()", answer=typed)
    _, cell = recorded(shared, "print('typed', first)")
    assert texts(cell) == "typed [masked: secret]\n"
    # never bound to a name that tells of it
    source = "print('typed', [getpass.getpass('Password: ')])"
    shared.run(source, answer=typed[::-1])
    assert texts(shared.recorded(source)) == "typed ['[masked: secret]']\n"
    data = b"".join(each.read_bytes() for each in shared.home.rglob("*") if each.is_file())
    assert typed.encode() not in data
    assert typed[::-1].encode() not in data


@pytest.mark.spec("L1", "L5")
def test_a_cell_that_unloads_has_an_end(kernel: Kernel) -> None:
    source = "print('so far')\nget_ipython().run_line_magic('unload_ext', 'ipymemory')\nx = 1"
    _, cell = recorded(kernel, source)
    assert cell["lines"] == ["cell", "end", "outputs"]
    assert cell["status"] == "unknown"
    kernel.kill()
    kernel.manager.start_kernel(env=kernel.env, cwd=str(kernel.work))
    kernel.client.wait_for_ready(timeout=60)
    assert "died" not in kernel.run("%load_ext ipymemory").text


@pytest.mark.spec("L7")
@pytest.mark.parametrize("first", ["%%private", "# ipymemory: off"])
def test_a_private_cell_leaves_no_trace(shared: Kernel, first: str) -> None:
    mark = "marsupial" + str(len(first))
    source = (
        f"{first}\n{mark} = 'hidden value {mark}'\n"
        f"def fail_{mark}():\n    raise ValueError({mark}[:6])"
    )
    ran = shared.run(source)
    assert ran.reply["status"] == "ok"
    failing = f"fail = globals()['fail_' + {mark[:4]!r} + {mark[4:]!r}]\nfail()"
    _, cell = recorded(shared, failing)
    assert cell["error_name"] == "ValueError"
    assert "[private]" in cell["error"]["traceback"]
    assert f"raise ValueError({mark}" not in str(cell)
    assert [each["name"] for each in cell["names"]] == ["fail"]
    assert f"hidden value {mark}" not in "".join(
        path.read_text("utf-8", "replace") for path in shared.home.rglob("*.jsonl")
    )


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "source",
    ["%%private\nkq = 71", "# ipymemory: off\nkq = 71", "%%private\n!echo kq71"],
)
@pytest.mark.parametrize(
    "shows",
    ["print(In[-2])", "In", "_ih", "_i", "%history", "%history -n", "%history -t", "%rerun"],
)
def test_a_way_to_print_a_cell_does_not_print_a_private_one(
    shared: Kernel, source: str, shows: str
) -> None:
    for _ in range(3):
        shared.run(source)
        ran = shared.run(shows)
        # What %rerun finds goes by the shell's database, which now and then loses a line.
        if "No lines in history" not in ran.text:
            break
    assert "kq" in ran.text, "the person sees it"
    after = f"'after {len(shared.cells())}'"
    shared.run(after)
    shared.recorded(after)
    last = [each for each in shared.cells() if each.get("source") == shows][-1]
    assert "kq" not in texts(last), texts(last)


def test_private_cells_run_as_any_other(shared: Kernel) -> None:
    ran = shared.run("%%private\nimport asyncio\nawait asyncio.sleep(0)\n40 + 2")
    assert ran.text == "42\n"
    assert shared.run(f"Out[{ran.reply['execution_count']}]").text == "42\n"


def test_run_all_is_every_cell_in_order(shared: Kernel) -> None:
    sources = [f"burst_{i} = {i}" for i in range(20)]
    requests = [shared.send(source) for source in sources]
    for request in requests:
        shared.collect(request)
    shared.recorded(sources[-1])
    found = [each["source"] for each in shared.cells() if "burst_" in each["source"]]
    assert found == sources


@pytest.mark.spec("L13")
def test_cells_run_before_loading_enter_by_their_source(new_kernel: Callable[..., Kernel]) -> None:
    kernel = new_kernel()
    kernel.run("early = 1")
    kernel.run("%%private\nearly_secret = 1")
    kernel.run("early + 1")
    kernel.run("%load_ext ipymemory")
    recorded(kernel, "later = 2")
    cells = kernel.cells()
    assert [(each["source"], each.get("origin")) for each in cells] == [
        ("early = 1", "history"),
        ("early + 1", "history"),
        ("later = 2", None),
    ]
    assert [each.get("execution_count") for each in cells] == [1, 3, 5]
    kernel.run("%unload_ext ipymemory")
    kernel.run("unseen = 1")
    kernel.run("%load_ext ipymemory")
    recorded(kernel, "seen = 1")
    assert [each["source"] for each in kernel.cells()].count("early = 1") == 1


@pytest.mark.spec("L1", "L2")
@pytest.mark.parametrize(
    "code",
    [
        "import os\npid = os.fork()\nif pid == 0:\n    print('child'); os._exit(0)\n"
        "os.waitpid(pid, 0)[1]",
        "import multiprocessing as mp\nwith mp.get_context('fork').Pool(2) as pool:\n"
        "    print(pool.map(abs, [-1, -2]))",
        "import nest_asyncio; nest_asyncio.apply()\nimport asyncio\n"
        "print(asyncio.run(asyncio.sleep(0, 'nested')))",
        "%gui asyncio\nprint('gui')",
        "%load_ext autoreload\n%autoreload 2\nprint('reloaded')",
        "%reset -f\nprint('reset')",
        "import gc; gc.collect(); print('collected')",
    ],
    ids=["fork", "multiprocessing", "nest_asyncio", "gui", "autoreload", "reset", "gc"],
)
@pytest.mark.skipif(os.name == "nt", reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_user_code_that_shakes_the_process(new_kernel: Callable[..., Kernel], code: str) -> None:
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    recorded(kernel, "before = 1")
    ran = kernel.run(code)
    assert ran.reply["status"] == "ok", ran
    shaken = kernel.recorded(code)
    assert shaken["lines"][:2] == ["cell", "end"]
    assert shaken["lines"].count("cell") == 1
    _, after = recorded(kernel, "print('still here')")
    assert texts(after) == "still here\n"
    eventually(lambda: "still here" in kernel.notes(), "the notes go on")
    assert kernel.shutdown() < 3


@pytest.mark.spec("L1")
def test_unload_and_reload_leave_one_recorder(kernel: Kernel) -> None:
    recorded(kernel, "one = 1")
    kernel.run("%reload_ext ipymemory")
    kernel.run("%reload_ext ipymemory")
    recorded(kernel, "two = 2")
    found = [each["source"] for each in kernel.cells()]
    assert found.count("two = 2") == 1
    assert len(kernel.sessions) == 1
    left = (
        "ip = get_ipython()\n"
        "[[c for c in ip.events.callbacks[n] if 'ipymemory' in str(c)]"
        " for n in ip.events.callbacks],"
        " 'send' in vars(ip.kernel.session), hasattr(ip, '_ipymemory')"
    )
    threads = "[t.name for t in __import__('threading').enumerate() if 'ipymemory' in t.name]"
    kernel.run("%unload_ext ipymemory")
    told = kernel.run(left).text
    assert "ipymemory" not in told.replace("_ipymemory", "")
    assert told.strip().endswith("False, False)")
    # A worker that was said goodbye writes its notes to the end; one thread waits for it, so
    # that no zombie is left, and goes with it.
    assert set(ast.literal_eval(kernel.run(threads).text)) <= {"ipymemory-reader"}
    eventually(lambda: kernel.run(threads).text.strip() == "[]", "no thread of ours is left")
    kernel.run("unseen = 1")
    assert "unseen = 1" not in [each["source"] for each in kernel.cells()]


@pytest.mark.spec("L5")
def test_a_cell_that_kills_the_kernel_is_named_at_the_next_load(kernel: Kernel) -> None:
    recorded(kernel, "print('fine')")
    source = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    kernel.send(source)
    eventually(lambda: not kernel.manager.is_alive(), "the kernel is dead")
    last = kernel.cells()[-1]
    assert (last["source"], last["lines"]) == (source, ["cell"])
    kernel.manager.start_kernel(env=kernel.env, cwd=str(kernel.work))
    kernel.client.wait_for_ready(timeout=60)
    said = kernel.run("%load_ext ipymemory").text
    assert "os.kill" in said or "import os, signal" in said
    assert "No variable" in said
    _, cell = recorded(kernel, "print('again')")
    assert cell["kernel"] == 2
    assert len(kernel.sessions) == 1


@pytest.mark.spec("L5")
def test_a_restart_goes_on_with_the_session(kernel: Kernel) -> None:
    recorded(kernel, "kept = 1")
    recorded(kernel, "1 / 0")
    kernel.run("%memory notes --now")
    kernel.restart()
    said = kernel.run("%load_ext ipymemory").text
    assert said.count("\n") == 1
    assert "Still open: [3] `ZeroDivisionError: division by zero`." in said
    assert "No variable" in said
    recorded(kernel, "again = 1")
    assert len(kernel.sessions) == 1
    names = [each["name"] for each in kernel.lines() if each["type"] == "event"]
    assert names[:2] == ["loaded", "restarted"]


@pytest.mark.spec("L5")
def test_two_kernels_on_one_notebook_have_two_sessions(new_kernel: Callable[..., Kernel]) -> None:
    one, two = new_kernel(), new_kernel()
    for kernel in (one, two):
        kernel.run("%load_ext ipymemory")
    asked = [
        (kernel, kernel.send(f"which = {name!r}")) for kernel, name in ((one, "one"), (two, "two"))
    ]
    for kernel, request in asked:
        kernel.collect(request)
    eventually(lambda: len(one.sessions) == 2, "each has its own")
    sources = sorted(str([c["source"] for c in one.cells(i)]) for i in (0, 1))
    assert sources == ["[\"which = 'one'\"]", "[\"which = 'two'\"]"]


@pytest.mark.spec("L2")
def test_a_home_that_cannot_be_written_costs_the_recording_only(
    tmp_path: Path, new_kernel: Callable[..., Kernel]
) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    kernel = new_kernel()
    ran = kernel.run("%load_ext ipymemory")
    assert ran.reply["status"] == "ok"
    assert "Nothing will be recorded" in ran.text
    ran = kernel.run("print('works')")
    assert (ran.text, ran.kinds) == ("works\n", ["stream"])
    status = kernel.run("%memory status").markdown
    assert "Recording** off" in status
    assert "cannot be made" in status


@pytest.mark.spec("L2")
@pytest.mark.skipif(os.name == "nt", reason="RLIMIT_FSIZE")
def test_a_full_disk_costs_the_recording_only(kernel: Kernel) -> None:
    recorded(kernel, "before = 1")
    size = (kernel.sessions[0] / "transcript.jsonl").stat().st_size + 300
    kernel.run(
        "%%private\nimport resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))"
    )
    for number in range(5):
        ran = kernel.run(f"print('full', {number})")
        assert (ran.text, ran.kinds) == (f"full {number}\n", ["stream"])
    assert "Recording** off" in kernel.run("%memory status").markdown
    kernel.run(
        "%%private\nresource.setrlimit(resource.RLIMIT_FSIZE, "
        "(resource.RLIM_INFINITY, resource.RLIM_INFINITY))"
    )
    data = (kernel.sessions[0] / "transcript.jsonl").read_bytes()
    assert b"before = 1" in data


@pytest.mark.spec("L2", "L3")
@pytest.mark.parametrize(
    "source",
    [
        "seen = []\nclass Proxy:\n    @property\n    def __class__(self):\n"
        "        seen.append(1)\n        raise RuntimeError('class')\np = Proxy()",
        "seen = []\nclass Meta(type):\n    def __eq__(self, other):\n"
        "        seen.append(1)\n        raise RuntimeError('eq')\n    __hash__ = type.__hash__\n"
        "class Odd(metaclass=Meta): pass\np = Odd()",
        "seen = []\nclass Frame:\n    __module__ = 'pandas.fake'\n    @property\n"
        "    def shape(self):\n        raise SystemExit\np = Frame()",
    ],
    ids=["class", "metaclass", "shape"],
)
def test_an_object_with_a_mind_of_its_own_costs_nothing(shared: Kernel, source: str) -> None:
    _, cell = recorded(shared, source)
    assert cell["lines"] == ["cell", "end", "outputs"]
    assert shared.run("seen").text == "[]\n"
    assert shared.recorded("seen")["status"] == "ok"


@pytest.mark.spec("L7")
def test_private_cells_that_nobody_recorded_are_not_quoted_either(
    new_kernel: Callable[..., Kernel],
) -> None:
    kernel = new_kernel()
    kernel.run("# ipymemory: off\ndef early(): hidden = 'EARLY'; return 1/0")
    kernel.run("%load_ext ipymemory")
    recorded(kernel, "early()")
    kernel.run("%memory pause")
    kernel.run("%%private\ndef paused(): hidden = 'PAUSED'; return 1/0")
    kernel.run("%memory resume-recording")
    recorded(kernel, "paused()")
    kernel.run("%%time\n%%private\nnested = 'NESTED'")
    recorded(kernel, "'after'")
    kernel.run("%memory notes --now")
    for path in kernel.home.rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8", "replace")
            assert not [mark for mark in ("EARLY", "PAUSED", "NESTED") if mark in text], path


@pytest.mark.spec("L13", "L2")
def test_a_module_beside_the_notebook_is_not_taken_for_ours(
    tmp_path: Path, new_kernel: Callable[..., Kernel]
) -> None:
    (tmp_path / "work").mkdir()
    for name in ("filelock", "psutil", "traitlets_config"):
        (tmp_path / "work" / f"{name}.py").write_text(f"print('the own {name} runs')")
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    ran, _ = recorded(kernel, "x = 1")
    assert ran.messages == []
    assert "own filelock" in kernel.run("import filelock").text
    assert kernel.run("%memory history").reply["status"] == "ok"
    eventually(lambda: "x = 1" in kernel.notes(), "the notes are there")


def test_notes_can_be_asked_for_right_after_a_reload(kernel: Kernel) -> None:
    recorded(kernel, "before_reload = 1")
    kernel.run("%reload_ext ipymemory")
    assert "before_reload" in kernel.run("%memory notes --now").markdown


def test_notes_asked_for_at_once_know_the_cell_before(kernel: Kernel) -> None:
    recorded(kernel, "first = 1")
    for number in range(5):
        requests = [
            kernel.send(f"raise ValueError('number {number}')"),
            kernel.send("%memory notes --now"),
        ]
        kernel.collect(requests[0])
        assert f"ValueError: number {number}" in kernel.collect(requests[1]).markdown


def test_a_kernel_that_a_cell_starts_is_not_of_its_notebook(
    new_kernel: Callable[..., Kernel],
) -> None:
    kernel = new_kernel()
    kernel.run("%load_ext ipymemory")
    kernel.run("outer = 1")
    child = (
        "import sys\nfrom jupyter_client.kernelspec import KernelSpec\n"
        "from jupyter_client.manager import KernelManager\n"
        "manager = KernelManager()\n"
        "argv = [sys.executable, '-m', 'ipykernel_launcher', '-f', '{connection_file}']\n"
        "manager._kernel_spec = KernelSpec(argv=argv, language='python')\n"
        "manager.start_kernel()\nclient = manager.client()\nclient.start_channels()\n"
        "client.wait_for_ready(timeout=60)\n"
        "for code in ('%load_ext ipymemory', 'inner = 2'):\n"
        "    client.execute_interactive(code)\n"
        "client.stop_channels()\nmanager.shutdown_kernel()"
    )
    kernel.run(child)
    assert len(kernel.sessions) == 2
    inner = next(at for at in (0, 1) if "inner = 2" in str(kernel.cells(at)[0].get("source")))
    record = json.loads((kernel.sessions[inner] / "session.json").read_text())
    assert not record.get("notebook")
