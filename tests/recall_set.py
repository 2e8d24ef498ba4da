"""Memories as a project has them after some months, and questions that people ask of them.

Written by hand, and not after what recall finds. Each question names the memory that answers it;
for those in `NOTHING` none does, though they share words with some. `HELD` and `HELD_NOTHING` are
of the same sort, were written before anything was mended, and nothing was mended by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ipymemory.memory_files import Draft, drafts
from ipymemory.memory_files.values import one_line

Find = Callable[[str], Sequence[str]]
"""From a question to the names of the memories that are found, at most five."""

MEMORIES = {
    "dates": ("project", "Dates in the harbour source are day-first, from the data team"),
    "cents": ("project", "Amounts in the ledger are stored in cents; divide `amount_total` by 100"),
    "mocks": ("feedback", "Never mock the database in tests; integration tests hit the real one"),
    "loader": ("project", "Use load_csv from our package for raw files, it knows the encoding"),
    "parser": ("project", "HTMLParser chokes on the 2019 export; strip the header first"),
    "board": ("project", "The board report is due on 2026-12-18"),
    "dictionary": ("reference", "The data dictionary is at https://wiki.example.org/data"),
    "role": ("user", "I am a climate scientist and new to pandas"),
    "plots": ("feedback", "Always label the axes of plots with units"),
    "polars": ("project", "We use polars for the weekly report because pandas ran out of memory"),
    "seed": ("project", "The random seed is 42 in every experiment so that runs compare"),
    "utc": ("project", "Timestamps of the loggers are UTC; local time is only for display"),
    "station7": ("project", "Station 7 was moved in March 2024; its level before is 12 cm too low"),
    "gaps": ("feedback", "Don't interpolate gaps longer than six hours, leave them empty"),
    "oncall": ("reference", "The on-call dashboard is at https://grafana.example.org/d/tides"),
    "bugs": ("reference", "Pipeline bugs are tracked in the Linear project INGEST"),
    "anna": ("project", "Anna Petersen owns the calibration table; ask her before changing it"),
    "gpu": ("project", "Training runs on the cluster's A100 queue, at most eight hours a job"),
    "outliers": ("project", "Outliers are values more than 3.5 median deviations from the median"),
    "privacy": ("feedback", "Never print customer names or email addresses in a notebook"),
    "style": ("feedback", "Short answers first, details only when asked"),
    "freeze": ("project", "Merges are frozen from 2026-12-20 until the mobile release is cut"),
    "salinity": ("project", "Salinity sensors drift after ninety days and must be recalibrated"),
    "parquet": ("project", "Intermediate results go to parquet in `data/interim`, never to csv"),
    "retry": ("project", "fetch_tides retries three times with backoff; the server limits us"),
    "holdout": (
        "project",
        "The holdout set is the year 2023 and nobody looks at it before the end",
    ),
    "metric": ("project", "Models are compared by mean absolute error in centimetres"),
    "baseline": ("project", "The baseline is yesterday's value; a model must beat it by 10 %"),
    "typehints": ("feedback", "Write type hints on public functions, docstrings in English"),
    "matplotlib": ("feedback", "Plots with matplotlib, not seaborn; the colour map is cividis"),
    "excel": ("project", "The finance team sends Excel files with merged header cells in row 3"),
    "currency": ("project", "Revenue is reported in euros at the rate of the invoice date"),
    "schema": (
        "reference",
        "The database schema lives in db/schema.sql and is the source of truth",
    ),
    "tokens": ("reference", "API keys are in the team's vault under ingest/prod, never in .env"),
    "review": ("feedback", "Two people review changes of the billing code"),
    "gender": ("project", "Survey question Q12 was reworded in 2022, so answers do not compare"),
    "weights": ("project", "Survey answers are weighted by age and region with column w_final"),
    "duplicates": ("project", "customer_id is not unique: merge on customer_id and valid_from"),
    "nulls": ("project", "The value -999 stands for missing in the buoy files"),
    "units": ("project", "Wind speed is in knots in the old files and in m/s since 2020"),
    "cache": (
        "project",
        "The feature cache is cleared with `make clean-cache` after schema changes",
    ),
    "notebooks": ("feedback", "Restart and run all before a notebook is handed over"),
    "python": ("project", "Production runs Python 3.11, so no syntax newer than that"),
    "deploy": ("project", "Deployments happen on Tuesdays by Omar, with a day's notice"),
    "sql": ("feedback", "Prefer plain SQL over the ORM for reports"),
    "zip": ("project", "Postal codes are text: leading zeros matter"),
    "leap": ("project", "The solver fails for 29 February; skip that day"),
    "license": ("reference", "The bathymetry data is licensed CC BY-NC, so not for client work"),
    "contact": ("reference", "Questions on the sensors go to sensors@harbour.example"),
    "backup": ("project", "Raw files are backed up nightly to the bucket raw-archive"),
    "bericht": ("project", "Der Monatsbericht muss am dritten Werktag fertig sein"),
    "pegel": ("project", "Der Pegelstand in Hamburg bezieht sich auf Normalhöhennull"),
    "groessen": ("project", "Größen stehen in Zentimetern, Gewichte in Kilogramm"),
    "umlaute": ("feedback", "Umlaute in Spaltennamen durch ae, oe, ue ersetzen"),
    "ansprech": ("reference", "Ansprechpartnerin für die Messreihen ist Frau Dr. Schröder"),
    "feiertage": ("project", "Feiertage werden bei der Auslastung nicht mitgezählt"),
    "komma": ("project", "Die Exporte aus SAP benutzen Dezimalkomma und Semikolon"),
    "kokyaku": ("project", "顧客データは毎週月曜日に更新される"),
    "hizuke": ("project", "日付の形式は年月日で、区切りはスラッシュ"),
    "uriage": ("project", "売上は税抜きの金額で集計する"),
    "shime": ("project", "月次報告書の締め切りは毎月五日"),
    "tantou": ("reference", "在庫システムの担当者は佐藤さん"),
    "graph": ("feedback", "グラフのラベルは必ず日本語で書くこと"),
    "keys": ("project", "userId in the events and user_id in the accounts are the same key"),
    "flag": ("project", "isActive is wrong before 2021; use last_seen_at instead"),
    "httpretry": ("project", "HTTPClient2 drops the session after 60 s of silence"),
    "version": ("project", "The feature table v2 replaced v1 in June; v1 is no longer filled"),
    "imputer": ("project", "KNNImputer made the winter values worse; use the seasonal median"),
}

ENGLISH = {
    "how are dates parsed in the harbour source?": "dates",
    "is it day or month first": "dates",
    "what unit are the ledger amounts in": "cents",
    "may I mock the database here?": "mocks",
    "should tests use the real database": "mocks",
    "when is the board report due": "board",
    "where do I find the data dictionary": "dictionary",
    "what is my background": "role",
    "what must be on the axes of a plot": "plots",
    "why did we choose polars": "polars",
    "which random seed do we use": "seed",
    "which time zone are logger timestamps in": "utc",
    "what happened to station 7": "station7",
    "how do I fill gaps in the series": "gaps",
    "where is the on-call dashboard": "oncall",
    "where are pipeline bugs tracked": "bugs",
    "who owns the calibration table": "anna",
    "how long may a training job run on the cluster": "gpu",
    "what counts as an outlier": "outliers",
    "can I print customer names": "privacy",
    "until when are merges frozen": "freeze",
    "do salinity sensors need recalibration": "salinity",
    "where do intermediate results go": "parquet",
    "which year is the holdout set": "holdout",
    "how do we compare models": "metric",
    "what does a model have to beat": "baseline",
    "docstrings in which language": "typehints",
    "which colour map for plots": "matplotlib",
    "in which row is the header of the excel files": "excel",
    "in what currency is revenue reported": "currency",
    "where is the database schema": "schema",
    "where are the API keys kept": "tokens",
    "why can survey question Q12 not be compared": "gender",
    "how are survey answers weighted": "weights",
    "what does -999 mean in the buoy files": "nulls",
    "is wind speed in knots": "units",
    "how do I clear the feature cache": "cache",
    "which Python version does production run": "python",
    "who does the deployments": "deploy",
    "ORM or SQL for reports": "sql",
    "why do postal codes have to be text": "zip",
    "what about 29 February": "leap",
    "may we use the bathymetry data for a client": "license",
    "who do I ask about sensors": "contact",
    "where are raw files backed up": "backup",
}

IDENTIFIERS = {
    "load_csv": "loader",
    "loadCsv": "loader",
    "what does load_csv know": "loader",
    "amountTotal": "cents",
    "amount_total / 100": "cents",
    "fetchTides fails with 429": "retry",
    "fetch_tides": "retry",
    "html parser error on export": "parser",
    "HTMLParser": "parser",
    "customerId unique?": "duplicates",
    "customer_id": "duplicates",
    "is user_id the same as userId": "keys",
    "isActive": "flag",
    "is_active": "flag",
    "http client drops session": "httpretry",
    "HTTPClient2": "httpretry",
    "w_final": "weights",
    "knn imputer": "imputer",
    "data/interim": "parquet",
    "db/schema.sql": "schema",
    "last_seen_at": "flag",
}

GERMAN = {
    "Wann muss der Monatsbericht fertig sein?": "bericht",
    "Worauf bezieht sich der Pegelstand?": "pegel",
    "In welcher Einheit stehen die Größen?": "groessen",
    "groesse in zentimeter": "groessen",
    "Was tun mit Umlauten in Spaltennamen?": "umlaute",
    "Wer ist die Ansprechpartnerin für Messreihen": "ansprech",
    "Zählen Feiertage bei der Auslastung?": "feiertage",
    "welches Dezimalzeichen hat der SAP Export": "komma",
    "Dezimalkomma": "komma",
    "Gewicht in Gramm oder Kilogramm": "groessen",
    "Wer ist Frau Schroeder": "ansprech",
}

JAPANESE = {
    "顧客データはいつ更新されますか": "kokyaku",
    "顧客データの更新日": "kokyaku",
    "日付の形式は？": "hizuke",
    "日付": "hizuke",
    "売上は税込みですか": "uriage",
    "報告書の締切はいつ": "shime",
    "締め切り": "shime",
    "在庫の担当者は誰": "tantou",
    "グラフのラベルは何語": "graph",
    "月曜日に何がある": "kokyaku",
}

TYPOS = {
    "when is the bord report due": "board",
    "calibraton table owner": "anna",
    "salinty sensors": "salinity",
    "wich random sead": "seed",
    "datbase schema": "schema",
    "bathymetrie licence": "license",
    "timestmaps of the loggers": "utc",
    "how are survey answers wieghted": "weights",
    "deploymnet day": "deploy",
    "pegelstnad hamburg": "pegel",
    "interpolating gaps": "gaps",
    "outlier definition": "outliers",
    "recalibrating salinity sensor": "salinity",
    "matplotlb or seaborn": "matplotlib",
}

NOTHING = (
    "how do I change the colour of a line",
    "what is the capital of France",
    "why is my kernel dead",
    "explain this traceback",
    "sort a list of numbers",
    "how do I merge two branches in git",
    "what does this cell do",
    "summarise the notebook",
    "read a json file",
    "how do I install numpy",
    "what is a p-value",
    "convert a string to lower case",
    "is there a faster way to loop over rows",
    "draw a histogram of the ages",
    "what is the weather tomorrow",
    "how many rows has this table",
    "rename a column",
    "what time is it",
    "write a function that returns the first element",
    "group by month and sum",
    "make this code shorter",
    "why is the result empty",
    "Wie sortiere ich eine Liste?",
    "Was macht diese Zelle?",
    "Wie ist das Wetter morgen?",
    "Warum ist das Ergebnis leer?",
    "この関数は何をしますか",
    "エラーの原因は何ですか",
    "リストを並べ替えたい",
    "plot_confusion_matrix",
    "df.groupby",
    "train_test_split",
    "open the file and count the words",
    "how do I write a test",
    "what is the last value",
)

SETS = {
    "English": ENGLISH,
    "identifiers": IDENTIFIERS,
    "German": GERMAN,
    "Japanese": JAPANESE,
    "misspelt or otherwise put": TYPOS,
}

HELD = {
    "day-first or month-first dates": "dates",
    "do I have to divide amount_total": "cents",
    "is it fine to mock the db in integration tests": "mocks",
    "encoding of raw files": "loader",
    "deadline of the board report": "board",
    "how long a gap may I interpolate": "gaps",
    "axis labels on plots": "plots",
    "is pandas used for the weekly report": "polars",
    "level offset at station 7 before March 2024": "station7",
    "how many reviewers does billing code need": "review",
    "leading zeros in postal codes": "zip",
    "which table version is filled": "version",
    "seasonal median or KNN for winter": "imputer",
    "getWFinal": "weights",
    "lastSeenAt": "flag",
    "can the holdout year be looked at": "holdout",
    "merging customers on valid_from": "duplicates",
    "who deploys on tuesday": "deploy",
    "vault path of the keys": "tokens",
    "mean absolut error": "metric",
    "feature chache": "cache",
    "salinity sensor drift": "salinity",
    "Semikolon im Export": "komma",
    "Gilt Normalhöhennull beim Pegelstand": "pegel",
    "Monatsberichte abgeben": "bericht",
    "Spaltenname mit Umlaut": "umlaute",
    "売上の集計方法": "uriage",
    "佐藤さんは何の担当": "tantou",
    "日付の区切り文字": "hizuke",
    "月次報告書はいつまで": "shime",
}

MEANT = {
    "who takes care of releasing to production": "deploy",
    "colours of figures": "matplotlib",
    "what money are earnings given in": "currency",
    "quality measure of forecasts": "metric",
    "folder for temporary tables": "parquet",
    "documentation of the fields": "dictionary",
    "where do I report a defect": "bugs",
    "extreme measurements": "outliers",
    "how do I handle missing observations between readings": "gaps",
    "copies of the original documents at night": "backup",
    "person responsible for instrument adjustment": "anna",
    "graphics card computing time limit": "gpu",
    "password storage": "tokens",
    "stay confidential about clients": "privacy",
    "brief replies": "style",
    "monitoring page of the person on duty": "oncall",
    "code inspection before invoices change": "review",
    "ZIP with 0 at the front": "zip",
    "interpreter release in live operation": "python",
    "spreadsheets from accounting": "excel",
    "clock of the measuring devices": "utc",
    "reproducibility of random numbers": "seed",
    "delivery date for directors": "board",
    "speed of the breeze, nautical": "units",
}
"""Asked without a word of the memory, or with one that says little: what embeddings are for."""

HELD_MEANT = {
    "faking the store in unit checks": "mocks",
    "reference forecast to outperform": "baseline",
    "untouched evaluation data": "holdout",
    "ocean floor maps for customers": "license",
    "email for help with probes": "contact",
    "pause on code integration before the app goes out": "freeze",
    "salt probes lose accuracy": "salinity",
    "legends and captions of charts": "plots",
    "missing entries marked as a negative number": "nulls",
    "leap year trouble": "leap",
    "table definitions": "schema",
    "annotations for parameters": "typehints",
    "executing everything from the top before passing it on": "notebooks",
    "raw queries instead of an object mapper": "sql",
    "why not the other dataframe library, memory consumption": "polars",
    "experience of the user": "role",
    "relocated gauge": "station7",
    "purging stored features": "cache",
    "poll responses balanced by demographics": "weights",
    "dollars or euro": "currency",
    "network timeouts of the web client": "httpretry",
    "the rate limit of the API": "retry",
}
"""The same, written with them. The bound of `recall.meaning` was chosen with its false answers in
view, so that what is found here is no measure of that."""

HELD_NOTHING = (
    "delete the second row",
    "what does this error mean",
    "how do I plot two lines in one figure",
    "translate this sentence to French",
    "count unique strings",
    "is this loop slow",
    "how do I read an image",
    "what is the type of x",
    "show me the first five rows",
    "how do I write to a file",
    "fit a straight line",
    "what is the size of the array",
    "who won the world cup",
    "fill the missing cells with zero",
    "how can I speed this up",
    "undo my last change",
    "np.linspace",
    "parse_args",
    "Wie lese ich eine Datei ein?",
    "Zeige die ersten Zeilen",
    "このセルを説明して",
    "合計を計算して",
)


def wrote(folder: Path) -> dict[str, str]:
    """Write the memories into `folder`; return the key of each in `MEMORIES` by its name there."""
    names: dict[str, str] = {}
    for number, (key, (kind, text)) in enumerate(MEMORIES.items()):
        title = one_line(text, 60).rstrip("….!")
        name = drafts.free_name(title, kind, [f"{each}.md" for each in names])
        draft = Draft(kind, title, text, text)
        time = f"2026-11-{1 + number % 28:02}T05:10:11.123Z"
        (folder / f"{name}.md").write_text(drafts.file_text(name, draft, time), "utf-8")
        names[name] = key
    return names


def hits(find: Find, names: Mapping[str, str], questions: Mapping[str, str]) -> tuple[float, float]:
    """Return the share of `questions` whose memory is among those found, and that is the first."""
    found = [([names[each] for each in find(asked)], key) for asked, key in questions.items()]
    there = sum(key in keys for keys, key in found)
    return there / len(found), sum(keys[:1] == [key] for keys, key in found) / len(found)


def wrong(find: Find, questions: Sequence[str]) -> float:
    """Return the share of `questions`, which none answers, for which something is found."""
    return sum(bool(find(each)) for each in questions) / len(questions)
