"""Six notebooks as people write them, for reading aloud what the built-in engine makes of each."""

from __future__ import annotations

from typing import Any


def printed(text: str) -> dict[str, Any]:
    """Return what a cell printed."""
    return {"output_type": "stream", "name": "stdout", "text": text}


def shown(text: str, **more: str) -> dict[str, Any]:
    """Return a cell's last value, or a picture."""
    data = {"text/plain": text, **{key.replace("_", "/"): value for key, value in more.items()}}
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}


def raised(name: str, value: str, line: str) -> dict[str, Any]:
    """Return what a cell raised."""
    text = (
        f"Traceback (most recent call last)\nCell In[9], line 1\n----> 1 {line}\n\n{name}: {value}"
    )
    return {"output_type": "error", "ename": name, "evalue": value, "traceback": [text]}


def book(*cells: Any) -> dict[str, Any]:
    """Return a notebook; a cell is its code, or code, output and count; prose begins with ``¶``."""
    found: list[dict[str, Any]] = []
    count = 0
    for at, each in enumerate(cells):
        source, output, *order = (each, None) if isinstance(each, str) else each
        if source.startswith("¶"):
            found.append(
                {"cell_type": "markdown", "id": f"m{at}", "metadata": {}, "source": source[1:]}
            )
            continue
        count += 1
        found.append(
            {
                "cell_type": "code",
                "id": f"c{at}",
                "metadata": {},
                "execution_count": order[0] if order else count,
                "outputs": [output] if output else [],
                "source": source,
            }
        )
    return {"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


CLEANING = book(
    "¶# MAGIC DOC: How the tide data gets clean\n_For whoever runs it next._\n",
    "import pandas as pd\nimport numpy as np\n\nRAW = 'data/tides_2025.csv'\nMAX_GAP = 3  # hours",
    (
        "raw = pd.read_csv(RAW, parse_dates=['time'])\nraw.head()",
        shown(
            "                 time  level station\n0 2025-01-01 00:00:00   3.20      WQ\n"
            "1 2025-01-01 01:00:00   3.35      WQ"
        ),
    ),
    ("print(raw.shape)\nprint(raw.isna().sum())", printed("(8760, 3)\ntime 0\nlevel 41\n")),
    "¶Levels above 12 m are the gauge's own test signal.",
    "clean = raw.dropna(subset=['level'])\nclean = clean[clean['level'] < 12]",
    (
        "def fill_gaps(frame, most=MAX_GAP):\n"
        '    """Fill gaps of at most `most` hours by the line between their ends."""\n'
        "    return frame.set_index('time').resample('1h').interpolate(limit=most)",
        None,
    ),
    "hourly = fill_gaps(clean)",
    "daily = hourly['level'].resample('1D').agg(['min', 'max', 'mean'])",
    ("daily.to_parquet('out/daily.parquet')\nprint(len(daily), 'days')", printed("365 days\n")),
    (
        "import matplotlib.pyplot as plt\ndaily['max'].plot(title='Highest water each day')\n"
        "plt.savefig('out/highest.png')",
        shown("<Axes: title={'center': 'Highest water each day'}>", image_png="iVBORw0KGgo="),
    ),
)

TRAINING = book(
    "¶# MAGIC DOC: Churn model\n",
    "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\nfrom churn.data "
    "import load_split",
    "SEED = 7\nBATCH = 64\nEPOCHS = 5\nLEARNING_RATE = 3e-4\ntorch.manual_seed(SEED)",
    (
        "train, valid = load_split('data/churn.parquet', share=0.8)\nlen(train), len(valid)",
        shown("(40213, 10054)"),
    ),
    "loader = DataLoader(train, batch_size=BATCH, shuffle=True)",
    "class Net(nn.Module):\n"
    '    """Two layers and a dropout."""\n\n'
    "    def __init__(self, width=128):\n        super().__init__()\n"
    "        self.layers = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 1))\n\n"
    "    def forward(self, x):\n        return self.layers(x)",
    "model = Net()\noptimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)\n"
    "loss_of = nn.BCEWithLogitsLoss()",
    (
        "for epoch in range(EPOCHS):\n    total = 0.0\n    for x, y in loader:\n"
        "        optimizer.zero_grad()\n        loss = loss_of(model(x), y)\n"
        "        loss.backward()\n        optimizer.step()\n        total += loss.item()\n"
        "    print(f'epoch {epoch} loss {total / len(loader):.4f}')",
        printed("".join(f"epoch {n} loss {0.61 - 0.05 * n:.4f}\n" for n in range(5))),
    ),
    (
        "with torch.no_grad():\n"
        "    right = sum((model(x) > 0).eq(y).sum().item() for x, y in valid)\n"
        "accuracy = right / len(valid)\nprint(f'accuracy: {accuracy:.3f}')",
        printed("accuracy: 0.874\n"),
    ),
    "torch.save(model.state_dict(), 'models/churn.pt')",
)

SIMULATION = book(
    "¶### Magic Doc: Queue at the counter\n\n*Say what the parameters do.*\n",
    "import numpy as np\nrng = np.random.default_rng(42)",
    "ARRIVALS = 12.0  # an hour\nSERVICE = 4.0  # minutes\nCOUNTERS = 2\nHOURS = 8\nRUNS = 500",
    "def one_day(arrivals, service, counters, hours):\n"
    '    """Return the waiting times of one day, in minutes."""\n'
    "    times = np.cumsum(rng.exponential(60 / arrivals, size=int(arrivals * hours)))\n"
    "    free = np.zeros(counters)\n    waits = []\n    for at in times:\n"
    "        counter = free.argmin()\n        begin = max(at, free[counter])\n"
    "        waits.append(begin - at)\n        free[counter] = begin + rng.exponential(service)\n"
    "    return np.array(waits)",
    (
        "%%time\nwaits = np.concatenate([one_day(ARRIVALS, SERVICE, COUNTERS, HOURS) for _ in "
        "range(RUNS)])",
        printed("CPU times: user 3.2 s, sys: 12 ms, total: 3.21 s\nWall time: 3.22 s\n"),
    ),
    (
        "print(f'mean wait {waits.mean():.2f} min, 95 % below {np.quantile(waits, 0.95):.2f} min')",
        printed("mean wait 0.84 min, 95 % below 4.71 min\n"),
    ),
    "np.save('results/waits.npy', waits)",
    "!ls -l results  # did it get there?",
)

TEACHING = book(
    "¶# MAGIC DOC: Lesson 3 at a glance\n",
    "¶## Lists\nA list holds things in order.",
    ("numbers = [3, 1, 2]\nnumbers[0]", shown("3")),
    ("sorted(numbers)", shown("[1, 2, 3]")),
    "¶## Your turn\nWrite a function that doubles every number.",
    "def double(values):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    (
        "double(numbers)",
        raised("NotImplementedError", "", "double(numbers)"),
    ),
    "# Try it with other numbers",
    "",
    ("for n in numbers:\n    print(n, 'squared is', n ** 2)", printed("3 squared is 9\n")),
    "assert double([1, 2]) == [2, 4]",
)

API = book(
    "¶# MAGIC DOC: Open issues by label\n_Name the address and the limits._\n",
    "import os\nimport json\nimport requests\nfrom collections import Counter\nfrom pathlib import "
    "Path",
    "BASE = 'https://api.example.org/v2'\nTOKEN = os.environ['ISSUES_TOKEN']\nPAGE_SIZE = 100",
    "session = requests.Session()\nsession.headers['Authorization'] = f'Bearer {TOKEN}'",
    "def pages(path, **params):\n    page = 1\n    while True:\n"
    "        answer = session.get(f'{BASE}/{path}', params={**params, 'page': page}, timeout=30)\n"
    "        answer.raise_for_status()\n        found = answer.json()\n        if not found:\n"
    "            return\n        yield from found\n        page += 1",
    (
        "issues = list(pages('issues', state='open', per_page=PAGE_SIZE))\nlen(issues)",
        shown("1874"),
    ),
    "by_label = Counter(label['name'] for issue in issues for label in issue['labels'])",
    (
        "by_label.most_common(3)",
        shown("[('bug', 611), ('docs', 240), ('help wanted', 198)]"),
    ),
    "Path('cache').mkdir(exist_ok=True)\nwith open('cache/issues.json', 'w') as file:\n"
    "    json.dump(issues, file)",
    (
        "session.get(f'{BASE}/rate_limit').json()['left']",
        raised("KeyError", "'left'", "session.get(f'{BASE}/rate_limit').json()['left']"),
    ),
)

MESSY = book(
    "¶# MAGIC DOC: What is in here\n",
    ("result = total / count", raised("NameError", "name 'total' is not defined", "result"), 14),
    ("df = df.drop(columns=['x'])", None, 9),
    ("import pandas as pd", None, 2),
    ("df = pd.read_excel('Budget (final) v2.xlsx', sheet_name='Q3')", None, 8),
    ("df", shown("     x    y\n0  1.0  2.0"), 5),
    ("total = df['y'].sum()\ncount = len(df)", None, 11),
    ("df2 = df\ndf3 = df2[df2.y > 0]\ntmp = df3", None, 12),
    ("df3.plot()", shown("<Axes: >", image_png="iVBORw0KGgo="), 13),
    ("pritn(total)", raised("NameError", "name 'pritn' is not defined", "pritn(total)"), 3),
    ("print(total)", printed("1234.5\n"), 4),
    ("%matplotlib inline", None, 1),
    ("x = 1", None, 6),
    ("x = 2\nx", shown("2"), 7),
    ("def helper(a): return a", None, 10),
    "asdf(",
    "# df.to_csv('old.csv')",
)

ALL = {
    "cleaning": CLEANING,
    "training": TRAINING,
    "simulation": SIMULATION,
    "teaching": TEACHING,
    "api": API,
    "messy": MESSY,
}
