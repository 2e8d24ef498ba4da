"""A notebook that shakes everything it can reach sees what it would see without us.

Each cell runs in two real kernels, one of which records. What a client sees is the same, cell by
cell, and so are names, hooks, signal handlers and streams at the end.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from kernels import Kernel, Ran

CELLS = r"""
import builtins; _o = builtins.open; builtins.open = lambda *a, **k: 1/0
--
print("open is gone")
--
builtins.open = _o
--
x3 = 3; x3
--
import os; _w = os.write; os.write = lambda *a: 1/0
--
print("write is gone")
--
os.write = _w
--
import time; _pc = time.perf_counter; time.perf_counter = lambda: None
--
2 + 2
--
time.perf_counter = _pc; _tt = time.time; time.time = lambda: 5.0
--
time.time = _tt
--
import sys, io; _so = sys.stdout; sys.stdout = io.StringIO(); print("hidden")
--
print("still hidden"); 5
--
sys.stdout = _so; print("shown")
--
class W:
    def write(self, s): _so.write(s.upper())
    def flush(self): pass
sys.stdout = W()
--
print("through w")
--
sys.stdout = _so
--
_dh = sys.displayhook
def hook(v):
    if v is not None: print("MINE", v)
sys.displayhook = hook
--
6 * 7
--
sys.displayhook = _dh
--
class R:
    def __repr__(self): raise ValueError("no repr")
R()
--
class E:
    def __repr__(self): raise SystemExit(4)
e_ = E(); e_
--
class K:
    @property
    def __class__(self): raise KeyboardInterrupt
    def __repr__(self): return "K"
k_ = K(); k_
--
class S:
    @property
    def shape(self): raise SystemExit(1)
    @property
    def columns(self): time.sleep(5); return []
    __module__ = "pandas.core.frame"
S.__name__ = "DataFrame"; s_ = S(); 1
--
class Meta(type):
    def __eq__(cls, o): raise SystemExit(9)
    def __hash__(cls): raise SystemExit(9)
    def __getattribute__(cls, n):
        raise SystemExit(9)
class M(metaclass=Meta): pass
m_ = M(); 2
--
class G:
    def __getattr__(self, n): raise RuntimeError(n)
    def __getattribute__(self, n): raise RuntimeError(n)
g_ = G(); 3
--
class Big:
    def __repr__(self): return "x" * 30_000_000
big_ = Big(); None
--
class Mut:
    def __repr__(self):
        get_ipython().user_ns["mutated"] = 1
        return "Mut"
mut_ = Mut(); mut_
--
mutated
--
class Str(str):
    def __eq__(self, o): raise SystemExit
    def __hash__(self): return 1
    def startswith(self, *a): raise SystemExit
    def __len__(self): raise SystemExit
password = Str("hunter2x!"); 4
--
globals()[Str("weird")] = 1; 5
--
globals()[3] = "int key"; 6
--
del globals()[3]
--
import types
class Lazy(types.ModuleType):
    def __getattribute__(self, n): raise ImportError("lazy " + n)
lazy_ = Lazy("lazy"); 7
--
sys.modules["lazy_boom"] = lazy_
--
import lazy_boom
--
sys.modules["none_mod"] = None; sys.modules["int_mod"] = 5; import int_mod
--
del sys.modules["none_mod"], sys.modules["int_mod"], sys.modules["lazy_boom"]
--
sys.setrecursionlimit(60)
--
[1, 2, 3]
--
def deep(n): return deep(n + 1)
deep(0)
--
sys.setrecursionlimit(3000)
--
import gc; gc.disable(); 8
--
gc.enable()
--
import threading
def late():
    time.sleep(0.3); sys.__stderr__
threading.Thread(target=late).start(); 9
--
import signal
def ours(*a): print("signal")
signal.signal(signal.SIGUSR1, ours); os.kill(os.getpid(), signal.SIGUSR1); time.sleep(0.05)
--
sys.settrace(lambda *a: None); 10
--
sys.settrace(None)
--
sys.setprofile(lambda *a: None)
--
sys.setprofile(None)
--
import tempfile; d_ = tempfile.mkdtemp(); os.chdir(d_); os.rmdir(d_); 11
--
print("in no folder")
--
os.chdir("/tmp"); 12
--
os.environ.clear(); 13
--
print("no environment")
--
os.environ[b"x".decode()] = "1"; os.environ = {}; 14
--
import warnings; warnings.simplefilter("error"); 15
--
import imp_not_there
--
warnings.simplefilter("default"); 16
--
import logging; logging.basicConfig(level=0, stream=sys.stdout); logging.getLogger().info("mine")
--
logging.disable(50); logging.Logger.manager.loggerDict.clear(); 17
--
from IPython.display import display, Markdown, update_display
h_ = display(Markdown("a"), display_id="q"); update_display(Markdown("b"), display_id="q")
--
get_ipython().events.trigger("pre_run_cell", None); 18
--
get_ipython().events.trigger("post_run_cell", None); 19
--
get_ipython().run_cell("print('inner')", store_history=True); 20
--
get_ipython().user_ns = get_ipython().user_ns; get_ipython().user_ns.pop("Out", None); 21
--
%xmode Verbose
--
1/0
--
%xmode Context
--
raise KeyboardInterrupt
--
class BadErr(Exception):
    def __str__(self): raise SystemExit
    @property
    def args(self): raise SystemExit
raise BadErr("x")
--
raise BaseExceptionGroup("g", [SystemExit(1), ValueError(2)])
--
raise SystemExit
--
def gen():
    yield 1
    raise ValueError("in gen")
list(gen())
--
import asyncio; await asyncio.sleep(0); 22
--
%load_ext autoreload
--
%autoreload 2
--
24
--
%autoreload 0
--
pid_ = os.fork()
if pid_ == 0:
    print("child"); sys.stdout.flush(); os._exit(0)
os.waitpid(pid_, 0)[1]
--
print("nul \x00 \x1b[31m red \x1b[0m \u202e rtl")
--
"\ud800"
--
globals()["\ud800name"] = 1; 25
--
import locale; 26
--
sys.stdout.reconfigure(encoding="ascii") if hasattr(sys.stdout, "reconfigure") else None
--
print("ü")
--
_st = threading.Thread.start; threading.Thread.start = lambda self: 1/0
--
27
--
threading.Thread.start = _st
--
import queue; _put = queue.SimpleQueue; queue.SimpleQueue = None; 28
--
queue.SimpleQueue = _put
--
_gp = type(get_ipython()).get_parent; type(get_ipython()).get_parent = lambda self: 1/0
--
29
--
type(get_ipython()).get_parent = _gp
--
30
--
__builtins__ = {}; 31
--
del __builtins__; 32
--
_f = get_ipython().display_formatter.formatters["text/plain"]
_f.for_type(int, lambda o, p, c: p.text("INT")); 33
--
34
--
_f.type_printers.pop(int); 35
--
42
--
subprocess.run(["true"]); 43
--
44
--
import time; time.sleep(0.5); 45
--
46
--
sum(range(10**6))
--
class Slow:
    def __repr__(self): time.sleep(0.3); return "slow"
Slow()
--
class Thief:
    def __del__(self): print("deleted")
t_ = Thief()
--
del t_
--
t2_ = Thief(); t2_ = 5
--
import weakref; o_ = Thief(); w_ = weakref.ref(o_); del o_; w_() is None
--
sys.modules["ipymemory_evil"] = 5; 48
--
def pre(i): print("pre", i.raw_cell[:5])
get_ipython().events.register("pre_run_cell", pre)
--
50
--
get_ipython().events.unregister("pre_run_cell", pre)
--
get_ipython().ast_transformers.append(5)
--
51
--
get_ipython().ast_transformers.clear()
--
get_ipython().input_transformers_post.append(lambda lines: ["print('T')\n"] + lines)
--
52
--
get_ipython().input_transformers_post.clear()
--
get_ipython().kernel.session.send.__name__ and None
--
from unittest import mock
with mock.patch("builtins.open", side_effect=ValueError):
    print("mocked2")
--
mock.patch("os.urandom", side_effect=ValueError).start(); 53
--
54
--
mock.patch.stopall()
--
mock.patch("threading.RLock", side_effect=ValueError).start(); 55
--
56
--
mock.patch.stopall()
--
import contextlib
with contextlib.redirect_stdout(None): print("x")
--
sys.stdout.write = None
--
print("w")
--
del sys.stdout.write
--
print("y")
--
os.umask(0o777); 58
--
59
--
os.umask(0o022)
--
60
--
61
--
62
--
63
--
64
--
"q" * 3000
--
66
--
import multiprocessing as mp
with mp.get_context("fork").Pool(2) as pool: print(pool.map(abs, [-1, -2]))
--
from concurrent.futures import ThreadPoolExecutor
put = get_ipython().user_ns.__setitem__
with ThreadPoolExecutor(8) as ex: list(ex.map(lambda i: put(f"t{i}", i), range(100)))
--
def mutate():
    for i in range(3000):
        globals()[f"zz{i % 50}"] = i; globals().pop(f"zz{(i + 25) % 50}", None)
ts = [threading.Thread(target=mutate) for _ in range(3)]; [t.start() for t in ts]; 67
--
68
--
[t.join() for t in ts] and None
"""

FIRST = "import sys, os, signal, gc, time, threading, subprocess; _so = sys.stdout"

PARENT_BACK = "type(get_ipython()).get_parent = _gp"
"""What runs while no request can be told, no lock made or nothing written is not recorded."""

LEFT = """
[sorted(k for k in globals() if type(k) is str and k.isidentifier() and k[0] not in '_z'),
 type(sys.displayhook).__name__, sys.excepthook.__qualname__, sys.stdout is _so,
 [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)],
 sys.getrecursionlimit(), gc.isenabled(), sys.gettrace(), sys.getprofile(),
 'write' in vars(sys.stdout), sorted(get_ipython().events.callbacks), os.getcwd()]
"""

_CHANGES = re.compile(
    r"0x[0-9a-f]+|ipykernel_\d+/\d+|\x1b\[[\d;]*m|(?:In ?\[|line |Thread-)\d+|tmp\w+|:\d+"
)


def seen(ran: Ran) -> tuple[object, ...]:
    """Return what a client saw, without what differs between any two kernels."""
    streams = {"stdout": "", "stderr": ""}
    others = []
    for kind, content in ran.messages:
        if kind == "stream":
            streams[content["name"]] += content["text"]
        else:
            told = {k: v for k, v in content.items() if k not in ("execution_count", "transient")}
            if kind == "error":
                # How many frames: the lines IPython shows of each hang on the order of a set.
                told["traceback"] = len(told["traceback"])
            others.append((kind, _CHANGES.sub("", json.dumps(told, sort_keys=True))))
    printed = [_CHANGES.sub("", each) for each in streams.values()]
    return (*printed, others, ran.reply["status"], ran.reply.get("ename"))


@pytest.mark.kernel
@pytest.mark.spec("L2")
def test_what_a_hostile_notebook_sees_is_the_same_with_and_without(tmp_path: Path) -> None:
    kernels = []
    try:
        for name in ("plain", "recorded"):
            folder = tmp_path / name
            folder.mkdir()
            kernels.append(Kernel(folder, env={"PYTHONHASHSEED": "0"}))
        plain, recorded = kernels
        recorded.run("%load_ext ipymemory")
        plain.run("pass")
        for cell in (FIRST, *cells()):
            assert seen(recorded.run(cell)) == seen(plain.run(cell)), cell
        assert seen(recorded.run(LEFT)) == seen(plain.run(LEFT))
        recorded.recorded(LEFT)
        kept = {each.get("source") for each in recorded.cells()}
        unseen = {"29", PARENT_BACK, "56"}
        assert {each for each in cells() if each not in kept} <= unseen
        assert "**Recording** on" in recorded.run("%memory status").markdown
    finally:
        for kernel in kernels:
            kernel.close()


def cells() -> list[str]:
    """Return the cells."""
    return CELLS.strip("\n").split("\n--\n")
