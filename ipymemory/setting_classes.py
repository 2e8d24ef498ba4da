"""The classes of settings, each setting a trait whose help is its documentation.

What ``%config`` lists is read from here, as are the ranges in which a value is taken.
"""

from __future__ import annotations

from traitlets import Bool, Enum, Float, Int, List, Unicode

from ipymemory.config_section import Section


class Memory(Section):
    """Where memory lies and how long it is kept."""

    home = Unicode(
        "", help="The home folder. Empty: the environment's IPYMEMORY_HOME, else ~/.ipymemory."
    ).tag(config=True)
    mode = Enum(
        ["auto", "confirm", "read", "off"],
        "auto",
        help=(
            "auto: memories and documents are written by themselves; confirm: every such write "
            "is a proposal; read: recall only; off: neither, and no engine call. Recording and "
            "notes go on in all four. A mode chosen with %memory mode in a project goes first."
        ),
    ).tag(config=True)
    share_worktrees = Bool(
        True, help="Whether linked git work trees share the main work tree's memory."
    ).tag(config=True)
    keep_days = Int(400, min=1, help="Days that a session is kept after its last turn.").tag(
        config=True
    )
    history_keep = Int(
        200, min=1, help="Runs of one job whose before-images are kept for undo, in a project."
    ).tag(config=True)
    folder = Enum(
        ["own", "claude"],
        "own",
        help=(
            "own: memories lie in the home folder; claude: in the folder that Claude Code keeps "
            "for this project, where every write is confirmed."
        ),
    ).tag(config=True)
    embeddings = Unicode(
        "",
        help=(
            "A folder with a model of word meanings (model2vec), so that recall also finds what "
            "shares no word with the question; needs pip install 'ipymemory[embed]'. It is only "
            "read: nothing is fetched or sent. Empty: by words alone."
        ),
    ).tag(config=True)
    recalled = Int(5, min=0, max=20, help="Memories recalled for one question, at most.").tag(
        config=True
    )


class Capture(Section):
    """What is recorded of a cell, and how much."""

    source_bytes = Int(
        32 * 1024, min=1024, max=48 * 1024, help="Bytes of a cell's source that are kept."
    ).tag(config=True)
    output_chars = Int(
        4000, min=200, max=16000, help="Characters kept of one piece of output."
    ).tag(config=True)
    outputs_bytes = Int(
        24 * 1024, min=1024, max=48 * 1024, help="Bytes kept of all outputs of a cell."
    ).tag(config=True)
    names = Int(40, min=0, max=200, help="Names a cell bound that are noted with their type.").tag(
        config=True
    )
    columns = Int(50, min=0, max=200, help="Column names that are noted of a data frame.").tag(
        config=True
    )
    late_seconds = Float(
        2.0, min=0.0, max=60.0, help="Seconds after a cell in which its late output still counts."
    ).tag(config=True)


_KEYS = """.env* *.env .envrc *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.gpg *.asc
*.age id_rsa* id_dsa* id_ecdsa* id_ed25519* .ssh .gnupg .aws .azure .kube .docker gcloud
kubeconfig* .netrc _netrc .pgpass .my.cnf .npmrc .pypirc .git-credentials .htpasswd .dockercfg .boto
.s3cfg *credential* *secret* *password* *passwd* *.tfstate *.tfvars service[-_]account*.json
token token.* *[-_]token *[-_]token.* *api[-_]key*"""
_DATA = """*.csv *.tsv *.psv *.xls *.xls? *.ods *.parquet *.feather *.arrow *.orc *.avro *.jsonl
*.ndjson *.geojson *.shp *.dbf *.gpkg *.pkl *.pickle *.joblib *.npy *.npz *.h5 *.hdf *.hdf5 *.nc
*.mat *.rds *.rda *.rdata *.sav *.zsav *.por *.dta *.sas7bdat *.xpt *.db *.db3 *.sqlite *.sqlite3
*.duckdb *.mdb *.accdb *.dump"""


class Privacy(Section):
    """What may be kept on disk, and what may be sent."""

    outputs = Enum(
        ["all", "no-tables", "shapes", "none"],
        "all",
        help=(
            "What is kept of outputs. all; no-tables: a table's rows are left out, since rows may "
            "be people; shapes: only type and shape; none: nothing but errors' names."
        ),
    ).tag(config=True)
    sent_outputs = Enum(
        ["all", "no-tables", "shapes", "none"],
        "no-tables",
        help="What of outputs may be sent to a model; never more than is kept.",
    ).tag(config=True)
    files = List(
        Unicode(),
        [*_KEYS.split(), *_DATA.split()],
        help=(
            "Names of files and folders, with * and ?, that no tool of a model may read, beside "
            "the built-in ones: keys, credentials and data formats, since rows may be people. "
            "!*.csv opens what a built-in name closes. Case does not count."
        ),
    ).tag(config=True)

    @property
    def closed(self) -> tuple[str, ...]:
        """The names that stay closed: the built-in ones and `files`, less those after a ``!``."""
        opened = {each[1:] for each in self.files if each.startswith("!")}
        own = (each for each in self.files if not each.startswith("!"))
        named = dict.fromkeys((*_KEYS.split(), *_DATA.split(), *own))
        return tuple(each for each in named if each not in opened)


class SessionNotes(Section):
    """The session notes."""

    enabled = Bool(True, help="Whether session notes are kept.").tag(config=True)
    wait_seconds = Float(
        1.0,
        min=0.0,
        max=3600.0,
        help="Seconds of rest before the extractive engine updates the notes.",
    ).tag(config=True)
    section_tokens = Int(
        2000, min=100, max=100_000, help="Soft limit of one section of the notes, in tokens."
    ).tag(config=True)
    total_tokens = Int(
        12_000, min=500, max=1_000_000, help="Soft limit of the notes as a whole, in tokens."
    ).tag(config=True)
    first_tokens = Int(
        10_000, min=0, max=10_000_000, help="Tokens of context before a model writes any notes."
    ).tag(config=True)
    update_tokens = Int(
        5000, min=100, max=10_000_000, help="Tokens of new context between two updates by a model."
    ).tag(config=True)
    update_calls = Int(
        3, min=0, max=1000, help="Cells and tool calls between two updates, unless the user rests."
    ).tag(config=True)
    rounds = Int(10, min=1, max=100, help="Most rounds of one update.").tag(config=True)
    minutes = Float(3.0, min=0.01, max=60.0, help="Most minutes of one update.").tag(config=True)
    context_tokens = Int(
        90_000, min=2000, max=10_000_000, help="Tokens of context past which it is compacted."
    ).tag(config=True)
    context_tokens_unmetered = Int(
        75_000, min=2000, max=10_000_000, help="The same, until a model has told its real usage."
    ).tag(config=True)
    kept_turns = Int(5, min=0, max=1000, help="Turns that a compaction keeps at least.").tag(
        config=True
    )
    kept_tokens = Int(
        10_000, min=0, max=1_000_000, help="Tokens of turns that a compaction keeps at least."
    ).tag(config=True)
    kept_tokens_most = Int(
        40_000,
        min=0,
        max=1_000_000,
        help="Tokens of covered turns that a compaction keeps at most.",
    ).tag(config=True)


class Extraction(Section):
    """What is learned for the notebooks to come, without being asked."""

    enabled = Bool(True, help="Whether memories are made of what people say.").tag(config=True)
    every_turns = Int(
        0, min=0, max=1000, help="Turns after which they are looked through; 0: after each."
    ).tag(config=True)
    rest_seconds = Float(
        120.0,
        min=1.0,
        max=86_400.0,
        help="Seconds at rest after which turns are looked through, however few.",
    ).tag(config=True)
    minutes = Float(3.0, min=0.01, max=60.0, help="Most minutes of one run.").tag(config=True)


class MagicDocs(Section):
    """Living documents, which keep themselves true."""

    enabled = Bool(
        True, help="Whether living documents of a running notebook are brought up to date."
    ).tag(config=True)
    model = Unicode("", help="The model that writes them; empty for Engine.model.").tag(config=True)


class Dream(Section):
    """How memories are tidied."""

    enabled = Bool(True, help="Whether memories are tidied by themselves.").tag(config=True)
    hours = Float(24.0, min=0.0, max=8760.0, help="Hours between two dreams.").tag(config=True)
    sessions = Int(
        5, min=0, max=1000, help="Other sessions of the project since the last dream, at least."
    ).tag(config=True)
    scan_minutes = Float(
        10.0, min=0.0, max=1440.0, help="Minutes between two looks at what sessions there are."
    ).tag(config=True)
    minutes = Float(30.0, min=0.01, max=240.0, help="Most minutes of one dream.").tag(config=True)


class Engine(Section):
    """The worker process and the engine that runs in it."""

    name = Enum(
        ["extractive", "anthropic"],
        "extractive",
        help=(
            "extractive: built in, no key, no network; anthropic: a model behind any server that "
            "speaks the Anthropic Messages API. Set in a config file it is consent for every "
            "project; %memory engine asks for one project."
        ),
    ).tag(config=True)
    model = Unicode("claude-haiku-5-5", help="The model, by its provider's name.").tag(config=True)
    effort = Enum(
        ["", "low", "medium", "high"],
        "low",
        help="How hard a model of Anthropic's own is to think; empty leaves it to the model.",
    ).tag(config=True)
    window_tokens = Int(
        200_000,
        min=4000,
        max=100_000_000,
        help=(
            "Tokens that the model takes at once. For one that takes less, as many on one's own "
            "machine do, name it here: the conversation is compacted at nine tenths of that."
        ),
    ).tag(config=True)
    answer_tokens = Int(8000, min=256, max=128_000, help="Longest answer, in tokens.").tag(
        config=True
    )
    answer_seconds = Float(
        120.0, min=1.0, max=3600.0, help="Seconds without a word after which a call is given up."
    ).tag(config=True)
    tries = Int(4, min=1, max=10, help="Tries of one call that failed for a passing reason.").tag(
        config=True
    )
    wait_most = Float(
        60.0, min=0.0, max=3600.0, help="Longest wait between two tries, whatever a server says."
    ).tag(config=True)
    ask_rounds = Int(50, min=1, max=500, help="Most rounds of one %%ask.").tag(config=True)
    ask_minutes = Float(20.0, min=0.01, max=240.0, help="Most minutes of one %%ask.").tag(
        config=True
    )
    summary_seconds = Float(
        30.0, min=0.0, max=3600.0, help="Seconds between a model's words on what it does; 0: none."
    ).tag(config=True)
    budget_day = Float(
        0.50,
        min=0.0,
        max=100_000.0,
        help=(
            "US dollars that models may cost in one project on one day (UTC) before what runs by "
            "itself stops until the next; a question of yours is always asked. 0: nothing that "
            "runs by itself calls a model."
        ),
    ).tag(config=True)
    budget_day_tokens = Int(
        5_000_000,
        min=0,
        max=10**12,
        help=(
            "The same bound for models without a known price, in tokens read and written. The "
            "default is what the default budget buys of the default model's input."
        ),
    ).tag(config=True)
    idle_minutes = Float(
        10.0, min=0.01, max=1440.0, help="Minutes with nothing to do after which the worker ends."
    ).tag(config=True)
    drain_seconds = Float(
        60.0, min=0.0, max=3600.0, help="Seconds a run in flight may take when the kernel ends."
    ).tag(config=True)
    idle_seconds = Float(
        5.0, min=0.1, max=3600.0, help="Seconds at rest after which a session counts as idle."
    ).tag(config=True)


CLASSES: tuple[type[Section], ...] = (
    Memory,
    Capture,
    Privacy,
    SessionNotes,
    Extraction,
    MagicDocs,
    Dream,
    Engine,
)
