"""What of a cell counts for staleness: pairs of cells that are the same step, and that are not."""

from __future__ import annotations

import random
import time

import pytest

from ipymemory.fingerprints import fingerprint

BASE = "def f(a, b):\n    if a:\n        return '# x  y'\n    return [a, b]\n%time f(1, 2)\n"
SHELL = "ls  -l\nfor f in *.csv; do\n  echo \"a  b\" '#' > $f\ndone\ncat <<'END'\n  a  # b\nEND\n"

SAME = [
    # Python
    (BASE, BASE.replace("\n", "\r\n")),
    (BASE, BASE.replace("\n", "\r")),
    (BASE, BASE.replace("    ", "  ")),
    (BASE, BASE.replace("    ", "\t")),
    (BASE, "# why\n\n" + BASE.replace("if a:", "if  a :  # when there is one\n\n")),
    (BASE, BASE.replace("[a, b]", "[\n  a,  # first\nb]")),
    (BASE, BASE + "\n\n# the end"),
    (BASE, BASE.replace("if a:\n", "if a:\n  # at another depth\n")),
    ("a = 1 + 2", "a=1+2"),
    ("a = (1\n  % b)", "a = (1 % b)"),
    ("a = b and \\\n  c", "a = b and c"),
    ("f(*a, ** b)", "f(* a, **b)"),
    ('f"{a}"  # x', 'f"{a}"'),
    ("a != b  # x", "a != b"),
    # a cell or a line of Python below a magic
    ("%%time\nx = 1", "%%time\n# why\nx = 1"),
    ("%%time\nx = 1", "%%time\n\nx  =  1  # one"),
    ("%%time\nx = 1", "\n\n%%time  \nx = 1\n"),
    ("%%timeit -n 10\nx = f(1)", "%%timeit  -n  10\n\nx = f( 1 )"),
    ("%%timeit a = 1  # set up\nf(a)", "%%timeit a=1\nf(a)"),
    ("%%capture out\nprint( 1 )", "%%capture  out\nprint(1)  # one"),
    ("%%capture\n%%time\nx = 1", "%%capture\n\n%%time\n# why\nx=1"),
    ("%%python\nif a:\n    b()", "%%python\nif a:  # yes\n  b()"),
    ("%%script python3 -u\nx = 1", "%%script python3 -u\nx  = 1  # one"),
    ("%%script --out o env pypy3\nx = 1", "%%script --out o env pypy3\nx=1"),
    ("%%capture\n!ls  -l", "%%capture\n!ls -l  # all"),
    ("%time f(1, 2)", "%time  f( 1,2 )  # why"),
    ("r = %timeit -o f(1)", "r=%timeit -o f( 1 )  # why"),
    ("%%writefile m.py\nx = 1", "%%writefile m.py\n# why\nx  =  1"),
    # a shell's words
    ("r = !ls", "r=!ls"),
    ("r = !ls", "r  =  !  ls"),
    ("a, b = !ls", "a,b=!ls"),
    ("!ls", "!ls  # all of them"),
    ("!ls -l *.csv", "!ls   -l\t*.csv  "),
    ("names = !ls *.csv  # a", "names = !ls *.csv  # b"),
    ("!a; b|c&&d", "!a ;  b | c && d"),
    ("!ls \\\n  -l", "!ls  -l"),
    ("%pip install numpy", "%pip  install numpy  # fast"),
    ("%sx ls", "%sx  ls # x"),
    ("%%bash\n" + SHELL, "%%bash\n# why\n\n" + SHELL.replace("ls  -l", "ls -l  # x")),
    ("%%bash\n" + SHELL, "%%bash\n" + SHELL.replace("  echo", "\techo")),
    ("%%sh\nif a; then\n  b\nfi", "%%sh\nif a ;then\nb\n\nfi"),
    ("%%script bash -e\nls", "%%script bash -e\n\nls  # x"),
    ("%%writefile run.sh\nls -l", "%%writefile run.sh\nls   -l # x"),
    ("%%!\nls", "%%!\nls # x"),
    # others
    ("%%sql\nselect a, 'b  c' from d", "%%sql\nSELECT".replace("SELECT", "select")
     + "  a,'b  c'\n  from d -- why"),
    ("%%sql\nselect /* all */ a from b", "%%sql\nselect a\nfrom b"),
    ("%%javascript\nlet a = 1; // one", "%%javascript\nlet a=1 ;"),
    ("%%js\nf(/* x */ a)", "%%js\nf(a)"),
    ("%%html\n<a href='#x'>b</a>", "%%html\n<!-- a link -->\n  <a  href='#x'>b</a>"),
    ("%%R\nx <- c(1, 2)  # two", "%%R\nx<-c(1,2)"),
    ("%%latex\n$a$ % why", "%%latex\n$a$"),
    ("%%nobody_knows --a  b\nx   y\n\n", "%%nobody_knows  --a b\nx y"),
    ("%matplotlib inline", "%matplotlib   inline"),
    ("%%ruby\nputs 1\n", "%%ruby\n\nputs   1"),
]  # fmt: skip

DIFFERENT = [
    # Python
    (BASE, BASE.replace("# x  y", "# x y")),
    (BASE, BASE.replace("# x", "# z")),
    (BASE, BASE.replace("    return [", "        return [")),
    (BASE, BASE.replace("f(1, 2)", "f(1, 3)")),
    (BASE, BASE.replace("if a:", "if b:")),
    (BASE, BASE.replace("%time", "%timeit")),
    ("a b", "ab"),
    ("a = 1", "a == 1"),
    ('"""a\n  b"""', '"""a\nb"""'),
    ("a = '#b'", "a = '#c'"),
    ('print(f"{a["#x"]} y")', 'print(f"{a["#z"]} y")'),
    ('print(f"{a["x y"]}")', 'print(f"{a["x  y"]}")'),
    # a cell or a line of Python below a magic
    ("%%time\nx = 1", "%%timeit\nx = 1"),
    ("%%time\nx = 1", "%%time\nx = 2"),
    ("%%time\nx = 1", "x = 1"),
    ("%%time\nif a:\n  b()\nc()", "%%time\nif a:\n  b()\n  c()"),
    ("%%capture\nx = 'a  b'", "%%capture\nx = 'a b'"),
    ("%%capture a\nx = 1", "%%capture b\nx = 1"),
    ("%%timeit -n 10\nx", "%%timeit -n 100\nx"),
    ("%%script python\nif a:\n    b()\n    c()", "%%script python\nif a:\n    b()\nc()"),
    ("%%python\nif a:\n    b()\n    c()", "%%python\nif a:\n    b()\nc()"),
    ("%%script python3\nx = '# a'", "%%script python3\nx = '# b'"),
    ("%%script python\nx", "%%script perl\nx"),
    ("%time f('a  b')", "%time f('a b')"),
    ("%%writefile m.py\nx = 'a  b'", "%%writefile m.py\nx = 'a b'"),
    ("%%writefile m.py\nx = 1", "%%writefile n.py\nx = 1"),
    ("%%writefile a.txt\n# x", "%%writefile a.txt\n# y"),
    ("%%writefile a.yaml\na:\n  b: 1\n  c: 2", "%%writefile a.yaml\na:\n  b: 1\nc: 2"),
    # a shell's words
    ('!grep "a  b" c', '!grep "a b" c'),
    ("!grep 'a  b' c", "!grep 'a b' c"),
    ("!grep a\\ \\ b c", "!grep a\\ b c"),
    ("!grep $'a\\'  b' c", "!grep $'a\\' b' c"),
    ('!echo a"b c"', '!echo a "b c"'),
    ("!find . -exec rm {} \\;", "!find . -exec rm {}\\;"),
    ("!curl host/#x", "!curl host/#y"),
    ("!echo '# x'", "!echo '# y'"),
    ("!echo a2>b", "!echo a 2>b"),
    ("r = !ls", "s = !ls"),
    ("r = !ls", "!ls"),
    ("r = !ls", "r = !!ls"),
    ("r['a  b'] = !ls", "r['a b'] = !ls"),
    ("%%bash\n" + SHELL, "%%bash\n" + SHELL.replace("a  b", "a b")),
    ("%%bash\n" + SHELL, "%%bash\n" + SHELL.replace("'#'", "'##'")),
    ("%%bash\n" + SHELL, "%%bash\n" + SHELL.replace("  a  # b", "a  # b")),
    ("%%bash\n" + SHELL, "%%bash\n" + SHELL.replace("a  # b", "a  # c")),
    ("%%bash\na\nb", "%%bash\na b"),
    ("%%bash\necho 'a\n\n  b'", "%%bash\necho 'a\nb'"),
    ("%%bash\necho ${a#b}", "%%bash\necho ${a#c}"),
    ("%%bash\necho $((1 << 2))\na # x\nb", "%%bash\necho $((1 << 2))\na # x\nc"),
    ("%%script bash\necho 'a  b'", "%%script bash\necho 'a b'"),
    ("%%bash\nls", "%%sh\nls"),
    # others
    ("a, b = %sql select '#1'", "a, b = %sql select '#2'"),
    ("%sql select 'a  b'", "%sql select 'a b'"),
    ("%env A=b  c", "%env A=b c"),
    ("%%sql\nselect 'a  b'", "%%sql\nselect 'a b'"),
    ("%%sql\nselect '--a'", "%%sql\nselect '--b'"),
    ("%%sql --save a\nselect 1", "%%sql --save b\nselect 1"),
    ("%%html\n<a href='#x'>", "%%html\n<a href='#y'>"),
    ("%%html\n<pre>a  b</pre>", "%%html\n<pre>a b</pre>"),
    ("%%javascript\na = '//b'", "%%javascript\na = '//c'"),
    ("%%javascript\na = `b  c`", "%%javascript\na = `b c`"),
    ("%%javascript\nreturn a", "%%javascript\nreturn\na"),
    ("%%javascript\na = /\\/\\//.test(b)", "%%javascript\na = /\\/\\//.test(c)"),
    ("%%javascript\na + +b", "%%javascript\na++b"),
    ("%%R\nx < -1", "%%R\nx <- 1"),
    ("%%R\nx <- 'a  b'", "%%R\nx <- 'a b'"),
    ("%%latex\n5 \\% a", "%%latex\n5 \\% b"),
    ("%%markdown\na  \nb", "%%markdown\na\nb"),
    ("%%nobody_knows\n# a", "%%nobody_knows\n# b"),
    ("%%nobody_knows\nif a\n  b", "%%nobody_knows\nif a\nb"),
    ("%%nobody_knows\n'a  b'", "%%nobody_knows\n'a b'"),
]  # fmt: skip


@pytest.mark.spec("M9")
@pytest.mark.parametrize(("one", "other"), SAME)
def test_white_space_and_comments_are_no_staleness(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other) != ""


@pytest.mark.spec("M9")
@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_changes_a_step_is_staleness(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.spec("M9")
@pytest.mark.parametrize("cell", [each for pair in DIFFERENT for each in pair if "\\" not in each])
def test_no_blank_line_and_no_trailing_blank_counts_in_any(cell: str) -> None:
    """A property of every cell above, but where lines are the value of something."""
    if any(mark in cell for mark in ('"""', "<<", "'a\n", "markdown", "<pre>", "%env", ".txt")):
        return
    if ".yaml" in cell:
        return
    head, below, rest = cell.partition("\n")
    for changed in (
        cell.replace("\n", "  \n"),
        cell + "  \n\n",
        "\n\n" + cell,
        head + below + rest.replace("\n", "\n\n"),
    ):
        assert fingerprint(changed) == fingerprint(cell), changed


WORDS = ["a", "b1", "'c  d'", '"#e"', "(", ")", "[", "]", ":", "=", "+", "if", "%time f(1)", "!ls"]


@pytest.mark.spec("M9")
def test_random_cells_do_not_change_with_their_comments_and_do_with_their_words() -> None:
    """Random lines of Python: a comment at the end of each and wider gaps are never seen."""
    seeded = random.Random(5)
    for _ in range(500):
        rows = [
            "    " * seeded.randrange(3)
            + " ".join(seeded.choice(WORDS[:12]) for _ in range(seeded.randrange(1, 6)))
            for _ in range(seeded.randrange(1, 8))
        ]
        if seeded.random() < 0.3:
            rows.insert(0, "%%time")
        cell = "\n".join(rows)
        spaced = "\n\n".join(
            each if each.startswith("%%") else f"{each.replace('b1 ', 'b1   ')}  # why '"
            for each in rows
        )
        assert fingerprint(spaced) == fingerprint(cell), cell
        at = seeded.randrange(len(rows))
        changed = [*rows[:at], rows[at] + " zz", *rows[at + 1 :]]
        assert fingerprint("\n".join(changed)) != fingerprint(cell), cell


@pytest.mark.spec("M9")
def test_a_cell_that_does_nothing_has_no_hash() -> None:
    assert fingerprint("# only a comment\n\n") == "" == fingerprint("")
    assert fingerprint("# x\n", "R") == ""


@pytest.mark.spec("M9")
def test_a_notebook_in_another_language_is_read_in_its_own() -> None:
    assert fingerprint("x <- 1 # a", "R") == fingerprint("x<-1", "R")
    assert fingerprint("x < -1", "R") != fingerprint("x <- 1", "R")
    assert fingerprint("this.#a = 1", "javascript") != fingerprint("this.#b = 1", "javascript")
    assert fingerprint("a // x", "javascript") == fingerprint("a", "javascript")
    assert fingerprint("x = a' # b", "julia") != fingerprint("x = a' # c", "julia")


@pytest.mark.spec("M9")
def test_hostile_cells_take_no_time() -> None:
    begin = time.perf_counter()
    for text in ('f"{' * 60_000, "f'''{" * 40_000, "((" * 100_000, "a = " * 50_000, "'" * 199_999):
        fingerprint(text)
        for magic in ("bash", "sql", "html", "javascript", "R", "latex", "nobody_knows", "time"):
            fingerprint(f"%%{magic}\n{text[:60_000]}")
    for magic, text in (
        ("bash", "cat <<A\n" * 20_000),
        ("bash", "cat <<A <<B <<C\n" * 10_000),
        ("html", "<!-- " * 38_000),
        ("sql", "/* " * 60_000),
        ("capture", "%%capture\n" * 18_000),
    ):
        fingerprint(f"%%{magic}\n{text}")
    fingerprint("a = " * 49_000 + "!ls")
    fingerprint("%%script " + "--out x " * 20_000)
    fingerprint("x + 1\n" * 1_000_000)
    assert time.perf_counter() - begin < 10
