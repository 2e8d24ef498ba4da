/** What shows a dream, in the panel and in the cell that began it: memories tidying themselves. */

import { Dream, IFile, IState } from './dream';
import { element } from './elements';

const STEPS: Record<string, string> = {
  orient: 'looks at what there is',
  gather: 'gathers what is new',
  consolidate: 'brings together what belongs together',
  prune: 'puts the files in place'
};

const ENDED: Record<string, string> = {
  done: 'The memories were tidied',
  killed: 'The dream was ended, and the memories are as they were',
  failed: 'The dream failed',
  dead: 'The dream died with its process; what it left is put right before the next one',
  locked: 'Another dream holds the memories',
  refused: 'The memories were not tidied',
  dismissed: 'The plan was dropped, and the memories are as they were',
  undone: 'The dream was taken back'
};

/** Seconds between two questions how a dream stands that runs. */
const ASK = 3;

/** A button of a dream: what it says, when it is there, and what it does. */
interface IAction {
  readonly button: HTMLButtonElement;
  readonly there: (dream: Dream, state: IState) => boolean;
}

export class DreamView {
  /** In a cell there is no heading. */
  constructor(private _inCell = false) {
    this.node = element(_inCell ? 'div' : 'section', 'ipymemory-dream');
    this.node.setAttribute('role', _inCell ? 'group' : 'region');
    this.node.setAttribute('aria-label', 'Dream');
    this._told = element('p', 'ipymemory-told');
    this._told.setAttribute('role', 'status');
    this._count = element('p', 'ipymemory-quiet');
    this._notice = element('p', 'ipymemory-notice');
    this._notice.setAttribute('role', 'alert');
    this._actions = [
      this._action('End the dream', 'The memories stay as they were', 'kill', dream => dream.running),
      this._action('Do it', 'Change exactly what is shown here', 'accept', dream => dream.waiting),
      this._action('Dismiss', 'Leave the memories as they are', 'dismiss', dream => dream.waiting),
      this._action(
        'Undo the dream',
        'Put all files back as they were before it',
        'undo',
        (_, state) => state.status === 'done' && state.run !== ''
      )
    ];
    this._turns = element('ul', 'ipymemory-turns');
    this._turns.setAttribute('aria-label', 'What the dream says');
    this._files = element('div', '');
    this.node.append(
      ...(_inCell ? [] : [element('h2', '', 'Dream')]),
      this._told,
      this._count,
      ...this._actions.map(each => each.button),
      this._notice,
      this._turns,
      this._files
    );
    this.node.hidden = true;
  }

  readonly node: HTMLElement;

  /** Show a dream as it stands, where it is not `said` elsewhere; of none, nothing. */
  show(dream: Dream | null, said = false): void {
    this._dream = dream;
    this._said = said;
    const state = dream?.state ?? null;
    this.node.hidden = state === null;
    if (!dream || !state) {
      this._tick(false);
      return;
    }
    this.node.dataset.status = state.status;
    put(this._told, told(state, dream.ending));
    this._told.hidden = said;
    put(this._count, counted(state, dream.doing));
    put(this._notice, dream.notice);
    this._notice.hidden = !dream.notice;
    for (const { button, there } of this._actions) {
      const shown = there(dream, state);
      if (!shown && button === document.activeElement) {
        // Before the button goes, so that a keyboard is not thrown back to the top.
        this.node.tabIndex = -1;
        this.node.focus();
      }
      button.hidden = !shown;
      button.setAttribute('aria-disabled', String(dream.ending));
    }
    this._list(dream);
    this._tick(dream.running);
  }

  /** Show nothing any more. */
  stop(): void {
    this._tick(false);
    this._dream = null;
  }

  private _action(
    label: string,
    title: string,
    what: 'kill' | 'accept' | 'dismiss' | 'undo',
    there: IAction['there']
  ): IAction {
    const button = element('button', '', label) as HTMLButtonElement;
    button.type = 'button';
    button.title = title;
    // Not disabled while the dream ends: that would take the focus from a keyboard.
    button.addEventListener('click', () => {
      if (!this._dream?.ending) {
        void this._dream?.[what]();
      }
    });
    return { button, there };
  }

  private _list(dream: Dream): void {
    const { files, turns } = dream;
    const key = JSON.stringify([dream.id, dream.waiting, turns, files.length, files[files.length - 1]]);
    if (key === this._listed) {
      return;
    }
    this._listed = key;
    this._turns.replaceChildren(...turns.map(each => element('li', '', each)));
    const before = this._files.querySelector('details');
    this._files.replaceChildren();
    if (files.length) {
      const more = element('details', '') as HTMLDetailsElement;
      // What is asked about is shown.
      more.open = dream.waiting || (before?.open ?? false);
      const title = dream.waiting ? 'Files that would change' : 'Files changed';
      more.append(element('summary', '', `${title} (${files.length})`));
      for (const each of files) {
        const name = each.gone ? `${each.name} (goes)` : each.name;
        more.append(element('p', 'ipymemory-quiet', name), difference(each));
      }
      this._files.append(more);
    }
  }

  /** Let the time go on while it runs. */
  private _tick(running: boolean): void {
    if (running && !this._timer) {
      this._timer = window.setInterval(() => {
        if (this.node.isConnected && this._dream?.running) {
          // One view of a page asks for all.
          if (!this._inCell && ++this._ticks % ASK === 0) {
            void this._dream.ask();
          }
          this.show(this._dream, this._said);
        } else {
          this._tick(false);
        }
      }, 1000);
    } else if (!running && this._timer) {
      clearInterval(this._timer);
      this._timer = 0;
    }
  }

  private _dream: Dream | null = null;
  private _said = false;
  private _told: HTMLElement;
  private _count: HTMLElement;
  private _notice: HTMLElement;
  private _actions: readonly IAction[];
  private _turns: HTMLElement;
  private _files: HTMLElement;
  private _listed = '';
  private _timer = 0;
  private _ticks = 0;
}

/** Return a difference as it came, its lines marked, reachable by the keyboard. */
function difference(file: IFile): HTMLElement {
  const diff = element('div', 'ipymemory-diff');
  diff.tabIndex = 0;
  diff.setAttribute('role', 'group');
  diff.setAttribute('aria-label', `What changes in ${file.name}`);
  for (const line of file.diff.split('\n')) {
    if (line.startsWith('---') || line.startsWith('+++') || !line) {
      continue;
    }
    const kind = line.startsWith('+') ? 'ins' : line.startsWith('-') ? 'del' : 'span';
    const words = line.startsWith('@@') ? '…' : line.slice(1);
    diff.append(element(kind, '', kind === 'span' ? `${words}\n` : words || ' '));
  }
  return diff;
}

function told(state: IState, ending: boolean): string {
  if (ending) {
    return 'The dream ends.';
  }
  if (state.status === 'running') {
    return `A dream tidies the memories: it ${STEPS[state.step] ?? 'begins'}.`;
  }
  const what = state.done.length ? state.done.join(', ') : 'there was nothing to tidy';
  if (state.status === 'waiting') {
    return `A dream would tidy the memories, and waits for your yes: ${what}.`;
  }
  const end = ENDED[state.status] ?? `The dream ended: ${state.status}`;
  if (state.status === 'done') {
    return `${end}: ${what}.`;
  }
  return state.error ? `${end}. ${state.error}` : `${end}.`;
}

function counted(state: IState, doing: string): string {
  const seconds =
    state.status === 'running'
      ? Math.max(0, Math.round((Date.now() - state.started) / 1000))
      : Math.round(state.seconds);
  const sessions = some(state.sessions, 'session', 'sessions');
  const reviewed = `${(state.reviewed ?? 0).toLocaleString()} of ${sessions} reviewed`;
  const found = [
    doing,
    some(state.memories, 'memory', 'memories'),
    sessions && (state.reviewed === null ? `${sessions} since the last` : reviewed),
    some(state.files, 'file', 'files') && `${some(state.files, 'file', 'files')} written`,
    some(state.turns, 'turn', 'turns'),
    some(state.calls, 'tool call', 'tool calls'),
    some(state.tokens, 'token', 'tokens'),
    state.usd ? `${state.usd.toFixed(4)} $` : '',
    state.status === 'waiting' || state.status === 'undone' ? '' : `${seconds} s`
  ];
  return found.filter(each => each).join(' · ');
}

function some(count: number, one: string, more: string): string {
  return count ? `${count.toLocaleString()} ${count === 1 ? one : more}` : '';
}

function put(node: HTMLElement, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}
